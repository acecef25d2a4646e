
  // A component as a table or a picture, made here: no server is asked.
  const handOver = (blob, name) => {
    const address = URL.createObjectURL(blob);
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };

  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // A label that begins like a formula would be run by a spreadsheet.
  const harmless = (text) => (/^[=+@\t]|^-(?![\d.])/.test(text) ? `'${text}` : text);

  const table = (r) => {
    const lines = ["mode,label,value,overall,rank"];
    for (const mode of data.modes) {
      mode.rows.forEach((row, k) => lines.push([
        quoted(harmless(mode.name)), quoted(harmless(mode.labels[k])),
        mode.values[r][k], data.signed ? "" : mode.overall[k], mode.ranks[r][k],
      ].join(",")));
    }
    return lines.join("\n") + "\n";
  };

  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "text-anchor"];
  const styled = (node) => {
    const copy = node.cloneNode(false);
    if (node.nodeType === Node.ELEMENT_NODE) {
      const style = getComputedStyle(node);
      for (const name of STYLES) copy.setAttribute(name, style.getPropertyValue(name));
      copy.removeAttribute("class");
      if (node.hasAttribute("hidden")) copy.setAttribute("visibility", "hidden");
    }
    for (const child of node.childNodes) copy.append(styled(child));
    return copy;
  };

  const picture = (r) => {
    const card = $(`component-${r + 1}`);
    const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
    const parts = [];
    const text = (words, x, y, size, fill, anchor = "start") => parts.push(make("svg:text",
      { x, y, "font-size": size, fill, "text-anchor": anchor, "font-family": "system-ui, sans-serif" }, words));
    const short = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);
    let y = 34;
    text(short(`${r + 1}. ${data.titles[r]}`, 52), 20, y, 16, colour("--ink"));
    text(shown(data.signed ? data.shares[r] : data.shares[r]), 400, y, 14, colour("--soft"), "end");
    for (const block of card.querySelectorAll(".mode, .map")) {
      y += 30;
      text(block.querySelector("h4").firstChild.textContent.trim(), 20, y, 12, colour("--soft"));
      const chart = block.querySelector("svg.chart");
      if (chart) {
        const box = chart.viewBox.baseVal;
        const copy = styled(chart);
        for (const name of ["tabindex", "data-extent"]) copy.removeAttribute(name);
        for (const [name, value] of [["x", 20], ["y", y + 6], ["width", 380], ["height", (380 * box.height) / box.width]]) copy.setAttribute(name, value);
        parts.push(copy);
        y += 10 + (380 * box.height) / box.width;
        continue;
      }
      for (const line of block.querySelectorAll(".bars li")) {
        y += 20;
        text(short(line.querySelector(".name").textContent, 26), 20, y, 12, colour("--ink"));
        for (const rect of line.querySelectorAll("rect")) {
          const [x, width] = ["x", "width"].map((name) => Number(rect.getAttribute(name) ?? 0));
          parts.push(make("svg:rect", { x: 190 + 1.4 * x, y: y - 9, width: 1.4 * width, height: 8, fill: getComputedStyle(rect).fill }));
        }
        text(line.querySelector("b").textContent, 400, y, 12, colour("--soft"), "end");
      }
    }
    return make("svg:svg", { xmlns: SVG, viewBox: `0 0 420 ${Math.ceil(y + 20)}`, width: 420, height: Math.ceil(y + 20) },
      make("svg:rect", { width: 420, height: Math.ceil(y + 20), fill: colour("--card") }), ...parts);
  };

  const asPixels = (drawn, done) => {
    const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" }));
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      canvas.toBlob(done, "image/png");
    };
    image.src = address;
  };

  for (const button of document.querySelectorAll(".save")) {
    button.closest(".tools").hidden = false;
    button.addEventListener("click", () => {
      const r = Number(button.closest("article").dataset.component);
      const name = `component-${r + 1}.${button.value}`;
      if (button.value === "csv") return handOver(new Blob(["\ufeff", table(r)], { type: "text/csv" }), name);
      const drawn = picture(r);
      if (button.value === "png") return asPixels(drawn, (blob) => handOver(blob, name));
      return handOver(new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" }), name);
    });
  }
