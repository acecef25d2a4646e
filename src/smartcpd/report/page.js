  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_CHOICES = 12;

  // Text only ever enters the page as text: labels come from data and are not trusted.
  const make = (name, attributes = {}, ...children) => {
    const node = name.startsWith("svg:")
      ? document.createElementNS(SVG, name.slice(4))
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  const shown = (value) => {
    if (data.signed) return Number(value.toPrecision(2)).toString().replace("-", "−");
    const percent = 100 * value;
    if (percent === 0) return "0 %";
    if (percent < 0.01) return "< 0.01 %";
    return percent.toFixed(percent >= 99.95 ? 0 : percent >= 1 ? 1 : 2) + " %";
  };

  const times = (value) => `${value >= 10 ? value.toFixed(0) : value.toFixed(1)}×`;
  const compares = !data.signed && data.rank > 1;

  // A bar; the tick stands where it would end if the label were as large as in all components.
  const bar = (value, scale, overall) => {
    const length = (100 * value) / scale;
    const start = data.signed ? (value >= 0 ? 50 : 50 + length / 2) : 0;
    const width = data.signed ? Math.abs(length) / 2 : length;
    const node = make("svg:svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      make("svg:rect", { class: "track", width: 100, height: 8 }),
      make("svg:rect", { class: value < 0 ? "fill negative" : "fill", x: start.toFixed(1), width: width.toFixed(1), height: 8 }));
    if (compares && overall !== undefined) {
      node.append(make("svg:rect", { class: "overall", x: Math.min((100 * overall) / scale, 99).toFixed(1), width: 1.2, height: 8 }));
    }
    return node;
  };

  const item = (mode, component, k, scale) => {
    const value = mode.values[component][k];
    const overall = mode.overall[k];
    const name = make("span", { class: "name", title: mode.labels[k] }, mode.labels[k]);
    const lift = compares && overall > 0 ? times(value / overall) : "";
    return make("li", { "data-row": mode.rows[k] }, name, bar(value, scale, overall),
      make("b", {}, shown(value)), make("em", {}, lift));
  };

  // Light and dark.
  const root = document.documentElement;
  const theme = $("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const nameTheme = () => theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  prefersDark.addEventListener("change", nameTheme);
  nameTheme();

  const blocks = [...document.querySelectorAll(".mode")].map((node) => ({
    node,
    number: Number(node.dataset.mode),
    mode: data.modes[Number(node.dataset.mode)],
    component: Number(node.dataset.component),
  }));

  // Reading a value off a line.
  const geometry = (chart) => {
    const [first, span, low, high] = chart.dataset.extent.split(",").map(Number);
    return {
      across: (place) => 30 + ((place - first) / span) * 324,
      up: (value) => 74 - ((value - low) / (high - low)) * 68,
      place: (x) => first + ((x - 30) / 324) * span,
    };
  };
  const point = (block, k) => {
    const chart = block.node.querySelector(".curve");
    const { across, up } = geometry(chart);
    const value = block.mode.values[block.component][k] * (data.signed ? 1 : block.mode.size);
    const marker = chart.querySelector(".marker");
    const dot = chart.querySelector(".dot");
    const x = across(block.mode.places[k]).toFixed(1);
    marker.setAttribute("x1", x);
    marker.setAttribute("x2", x);
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", up(value).toFixed(1));
    for (const part of [marker, dot]) part.removeAttribute("hidden");
    const note = block.node.querySelector("h4 span");
    if (!note.dataset.words) note.dataset.words = note.textContent;
    note.textContent = `${block.mode.labels[k]}: ${data.signed ? shown(value) : Number(value.toPrecision(3)) + "×"}`;
    note.className = "reading";
  };
  const unpoint = (block) => {
    for (const part of block.node.querySelectorAll(".marker, .dot")) part.setAttribute("hidden", "");
    const note = block.node.querySelector("h4 span");
    if (note.dataset.words) note.textContent = note.dataset.words;
    note.className = "";
  };
  for (const block of blocks) {
    const chart = block.node.querySelector(".curve");
    if (!chart) continue;
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const place = geometry(chart).place(((event.clientX - box.left) / box.width) * 360);
      let best = 0;
      block.mode.places.forEach((p, k) => {
        if (Math.abs(p - place) < Math.abs(block.mode.places[best] - place)) best = k;
      });
      point(block, best);
    });
    const leave = () => {
      unpoint(block);
      mark(current);
    };
    chart.addEventListener("pointerleave", leave);
    // By keyboard: arrows go from row to row, with Shift ten at a time.
    let at = null;
    chart.addEventListener("focus", () => {
      at = at ?? block.mode.places.length >> 1;
      block.node.querySelector("h4 span").setAttribute("role", "status");
      point(block, at);
    });
    chart.addEventListener("blur", leave);
    chart.addEventListener("keydown", (event) => {
      const last = block.mode.places.length - 1;
      const far = event.shiftKey ? 10 : 1;
      const to = { ArrowLeft: at - far, ArrowRight: at + far, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      at = Math.min(Math.max(to, 0), last);
      point(block, at);
    });
  }

  // Search.
  const form = document.querySelector(".search");
  const input = $("search");
  let current = null;
  form.hidden = false;

  const mark = (choice) => {
    current = choice;
    for (const node of document.querySelectorAll(".pinned")) node.remove();
    for (const node of document.querySelectorAll(".found-row")) node.classList.remove("found-row");
    for (const block of blocks) {
      if (block.mode.shape === "curve") unpoint(block);
      if (!choice || block.number !== choice.mode) continue;
      const row = block.mode.rows[choice.k];
      if (block.mode.shape === "curve") {
        point(block, choice.k);
        continue;
      }
      let node = block.node.querySelector(`.bars:not(.long) [data-row="${row}"], svg [data-row="${row}"]`);
      if (!node && block.mode.shape === "bars") {
        const list = block.node.querySelector(".bars");
        node = item(block.mode, block.component, choice.k, Number(list.dataset.scale));
        node.classList.add("pinned");
        list.append(node);
      }
      if (node) node.classList.add("found-row");
    }
  };

  // The way to a card, which the table of answers must not cover then.
  const link = (r) => {
    const node = make("a", { href: `#component-${r + 1}` }, `${r + 1}. ${data.titles[r]}`);
    node.addEventListener("click", () => {
      fold(true);
      setTimeout(() => $(`component-${r + 1}`).focus({ preventScroll: true }), 0);
    });
    return node;
  };

  const explain = (choice) => {
    const mode = data.modes[choice.mode];
    const scale = Math.max(...mode.values.map((column) => Math.abs(column[choice.k])), 1e-300);
    const order = mode.values.map((column, r) => r)
      .sort((a, b) => Math.abs(mode.values[b][choice.k]) - Math.abs(mode.values[a][choice.k]));
    const body = make("tbody");
    for (const r of order.slice(0, 20)) {
      const value = mode.values[r][choice.k];
      const cell = make("td");
      cell.append(bar(value, scale));
      body.append(make("tr", {},
        make("td", {}, link(r)),
        make("td", { class: "number" }, shown(value)), cell,
        make("td", { class: "number" }, value === 0 ? "–" : `${mode.ranks[r][choice.k].toLocaleString("en")} of ${mode.size.toLocaleString("en")}`)));
    }
    const head = make("tr", {});
    for (const [words, kind] of [["component", ""], [data.signed ? "entry" : "share of it", "number"], ["", ""], ["rank", "number"]]) {
      head.append(make("th", { scope: "col", class: kind }, words));
    }
    const table = make("table", {},
      make("caption", {}, `${mode.labels[choice.k]} (${mode.name}) in the components, strongest first`),
      make("thead", {}, head), body);
    $("answer").replaceChildren(make("div", { class: "scroll" }, table));
  };

  const foldButton = $("fold");
  const fold = (folded) => {
    $("found").classList.toggle("folded", folded);
    foldButton.setAttribute("aria-expanded", String(!folded));
    foldButton.textContent = folded ? "Unfold" : "Fold";
  };
  foldButton.addEventListener("click", () => fold(!$("found").classList.contains("folded")));

  const choose = (choice) => {
    mark(choice);
    explain(choice);
    for (const button of $("choices").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.value === `${choice.mode} ${choice.k}`));
    }
  };

  const matches = (words) => {
    const found = [];
    data.modes.forEach((mode, number) => mode.labels.forEach((label, k) => {
      const at = label.toLocaleLowerCase().indexOf(words);
      if (at >= 0) found.push({ mode: number, k, at, extra: label.length - words.length });
    }));
    // Whole labels first, then those that begin with the words.
    return found.sort((a, b) => (a.extra && b.extra ? Math.sign(a.at) - Math.sign(b.at) : 0) || a.extra - b.extra);
  };

  const search = () => {
    const words = input.value.trim().toLocaleLowerCase();
    $("found").hidden = !words;
    $("answer").replaceChildren();
    $("choices").replaceChildren();
    fold(false);
    if (!words) return mark(null);
    const found = matches(words);
    foldButton.hidden = !found.length;
    const cut = data.modes.some((mode) => mode.rows.length < mode.size);
    const count = found.length === 1 ? "1 label" : `${found.length.toLocaleString("en")} labels`;
    $("search-status").textContent = found.length
      ? `${count} found${found.length > MOST_CHOICES ? `, the best ${MOST_CHOICES} shown` : ""}`
      : `No label contains “${input.value.trim()}”${cut ? "; this page does not hold all labels" : ""}`;
    for (const choice of found.slice(0, MOST_CHOICES)) {
      const mode = data.modes[choice.mode];
      const button = make("button", { type: "button", value: `${choice.mode} ${choice.k}`, "aria-pressed": "false" },
        `${mode.labels[choice.k]} `, make("span", {}, mode.name));
      button.addEventListener("click", () => choose(choice));
      $("choices").append(make("li", {}, button));
    }
    if (found.length) choose(found[0]);
    else mark(null);
  };

  input.addEventListener("input", search);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (current) fold(true);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|textarea|select)$/i.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === "Escape" && input.value) {
      input.value = "";
      search();
      input.focus();
    }
  });

  // Links within the page move the focus, not only the view.
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => {
      const target = $(link.getAttribute("href").slice(1));
      if (target) setTimeout(() => target.focus({ preventScroll: true }), 0);
    });
  }

  for (const button of document.querySelectorAll(".copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.closest("figure").querySelector("code").textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select the text and copy it";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
