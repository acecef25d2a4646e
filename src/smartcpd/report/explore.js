
  // The overview: sorted by any column, filtered by words.
  const matrix = $("matrix");
  if (matrix) {
    const body = matrix.tBodies[0];
    const heads = [...matrix.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", class: "sort" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const numbers = column !== 1;
        const first = numbers && column > 1 ? "descending" : "ascending";
        const other = first === "descending" ? "ascending" : "descending";
        const way = head.getAttribute("aria-sort") === first ? other : first;
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", way);
        const key = (row) => row.cells[column].dataset.value;
        const rows = [...body.rows].sort((a, b) => (numbers ? key(a) - key(b) : key(a).localeCompare(key(b))));
        if (way === "descending") rows.reverse();
        body.append(...rows);
      });
    });
    const filter = $("filter");
    filter.closest(".tools").hidden = false;
    filter.addEventListener("input", () => {
      const words = filter.value.trim().toLocaleLowerCase();
      let count = 0;
      for (const row of body.rows) {
        const titles = [...row.cells].map((cell) => cell.title).join(" ");
        row.hidden = !`${row.textContent} ${titles}`.toLocaleLowerCase().includes(words);
        count += row.hidden ? 0 : 1;
      }
      for (const card of document.querySelectorAll("article.card")) {
        card.hidden = body.querySelector(`tr[data-component="${card.dataset.component}"]`).hidden;
      }
      $("filter-status").textContent = words ? `${count} of ${body.rows.length}` : "";
    });
  }

  // Two components side by side: where they differ most.
  const MOST_COMPARED = 10;
  const compare = $("compare");

  const pairOfBars = (mode, k, scale, pair) => {
    const node = make("li", { class: "pair" }, make("span", { class: "name", title: mode.labels[k] }, mode.labels[k]));
    pair.forEach((r, number) => {
      const value = mode.values[r][k];
      const drawn = bar(value, scale);
      drawn.classList.add(number ? "second" : "first");
      node.append(drawn, make("b", {}, shown(value)));
    });
    return node;
  };

  const comparedBars = (mode, pair) => {
    const [a, b] = pair.map((r) => mode.values[r]);
    const order = mode.rows.map((row, k) => k)
      .sort((i, j) => Math.abs(a[j] - b[j]) - Math.abs(a[i] - b[i])).slice(0, MOST_COMPARED);
    const scale = Math.max(...order.flatMap((k) => [Math.abs(a[k]), Math.abs(b[k])]), 1e-300);
    return make("ol", { class: "bars" }, ...order.map((k) => pairOfBars(mode, k, scale, pair)));
  };

  const comparedLines = (mode, pair) => {
    const places = mode.places ?? mode.rows;
    const [first, last] = [places[0], places[places.length - 1]];
    const factor = data.signed ? 1 : mode.size;
    const all = pair.flatMap((r) => mode.values[r].map((value) => value * factor));
    const low = Math.min(0, ...all);
    const high = Math.max(...all, low + 1e-300);
    const chart = make("svg:svg", { class: "chart", viewBox: "0 0 360 100", role: "img",
      "aria-label": `${mode.name}: both components as lines` });
    for (const value of [low, high]) {
      const y = 84 - ((value - low) / (high - low)) * 76;
      const text = make("svg:text", { class: "tick", x: 30, y: y + 4, "text-anchor": "end" },
        `${Number(value.toPrecision(2))}${data.signed ? "" : "×"}`);
      chart.append(make("svg:line", { class: "grid", x1: 34, x2: 354, y1: y, y2: y }), text);
    }
    pair.forEach((r, number) => {
      const points = mode.values[r].map((value, k) => {
        const x = 34 + ((places[k] - first) / (last - first || 1)) * 320;
        return `${x.toFixed(1)} ${(84 - ((value * factor - low) / (high - low)) * 76).toFixed(1)}`;
      });
      chart.append(make("svg:path", { class: number ? "line second" : "line first", d: `M${points.join("L")}` }));
    });
    chart.append(make("svg:text", { class: "tick", x: 34, y: 98 }, mode.labels[0]),
      make("svg:text", { class: "tick", x: 354, y: 98, "text-anchor": "end" }, mode.labels[mode.labels.length - 1]));
    return chart;
  };

  if (compare) {
    compare.hidden = false;
    const [one, two] = [$("one"), $("two")];
    data.titles.forEach((title, r) => {
      for (const select of [one, two]) select.append(make("option", { value: r }, `${r + 1}. ${title}`));
    });
    two.value = "1";
    const draw = () => {
      const pair = [Number(one.value), Number(two.value)];
      $("compared").replaceChildren(...data.modes.map((mode) => {
        const legend = make("p", { class: "small" }, make("b", { class: "first" }, `■ ${pair[0] + 1} `), make("b", { class: "second" }, `■ ${pair[1] + 1}`));
        return make("section", { class: "card" }, make("h4", {}, mode.name), legend,
          mode.shape === "bars" ? comparedBars(mode, pair) : comparedLines(mode, pair));
      }));
    };
    one.addEventListener("change", draw);
    two.addEventListener("change", draw);
    draw();
  }
