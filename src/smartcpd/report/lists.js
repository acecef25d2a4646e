
  // The names that a card leaves out at first. Long lists scroll in a box of their own, and only
  // what is seen of them is in the page.
  const LINE = 22;
  const LONG = 60;
  const SEEN = 16;

  const scrolling = (count, line) => {
    const inner = make("div", { class: "inner-list", role: "presentation" });
    const sizer = make("svg:svg", { class: "sizer", width: 1, height: count * LINE, "aria-hidden": "true" });
    const list = make("ol", { class: "bars" });
    inner.append(sizer, list);
    const box = make("div", { class: "long", tabindex: 0, role: "region", "aria-label": `All ${count.toLocaleString("en")} labels` }, inner);
    const draw = () => {
      const first = Math.max(0, Math.floor(box.scrollTop / LINE) - 4);
      const last = Math.min(count, first + SEEN + 10);
      list.replaceChildren();
      for (let k = first; k < last; k += 1) {
        const node = line(k);
        node.setAttribute("aria-setsize", count);
        node.setAttribute("aria-posinset", k + 1);
        list.append(node);
      }
      list.setAttribute("class", "bars moved");
      list.style.setProperty("top", `${first * LINE}px`);
    };
    box.addEventListener("scroll", draw, { passive: true });
    draw();
    return box;
  };

  for (const { node, mode, component } of blocks) {
    const button = node.querySelector(".more");
    if (!button) continue;
    const list = node.querySelector(".bars");
    const few = list.children.length;
    const words = button.textContent;
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      while (list.children.length > few) list.lastChild.remove();
      const box = node.querySelector(".long");
      if (box) box.remove();
      if (open) {
        const there = new Set([...list.children].map((child) => Number(child.dataset.row)));
        const order = mode.rows.map((row, k) => k)
          .filter((k) => mode.values[component][k] !== 0 && !there.has(mode.rows[k]))
          .sort((a, b) => mode.ranks[component][a] - mode.ranks[component][b]);
        const scale = Number(list.dataset.scale);
        if (order.length > LONG) button.before(scrolling(order.length, (k) => item(mode, component, order[k], scale)));
        else for (const k of order) list.append(item(mode, component, k, scale));
      }
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Show fewer" : words;
      mark(current);
    });
  }
