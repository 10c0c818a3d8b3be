// What the browser tests measure on a page; each function returns what selenium can hand back.
const rect = (node) => node.getBoundingClientRect();
const all = (selector, root) => [...(root || document).querySelectorAll(selector)];

// The sentence that explains a word where it first appears, but for titles; null where it is not explained there.
function explained(word) {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    if (node.parentNode.closest("script, nav, h1, noscript") || !node.textContent.includes(word)) continue;
    const place = node.parentNode.closest("[data-word]");
    return place && place.dataset.word === word ? place.innerText : null;
  }
  return null;
}

// Every table: its heads, and its rows with what kind they are, their numbers and whether these are bold.
function tables() {
  const cell = (node) => {
    const number = node.querySelector("b, span span") || node.querySelector("span") || node;
    return [number.innerText, Number(getComputedStyle(number).fontWeight) >= 600];
  };
  const kind = (row) => (row.dataset.row ? "line" : row.dataset.level ? "level" : "authors");
  return all("#table table").map((table) => ({
    heads: all("thead th", table).map((head) => head.innerText),
    rows: all("tbody tr", table).map((row) => ({ kind: kind(row), cells: all("td", row).map(cell) })),
  }));
}

// Labels on each other, cut off or over the curves; panels and sections without anything; places that stay empty.
function faults() {
  const bad = [];
  for (const plot of all(".plot:not([hidden])")) {
    const name = plot.getAttribute("aria-label"), room = rect(plot);
    if (!plot.data || !plot.data.length || !room.height) bad.push([name, "is empty"]);
    const texts = all("text", plot).filter((node) => node.textContent.trim() && rect(node).width);
    texts.forEach((one, i) => {
      const a = rect(one);
      if (a.left < room.left - 1 || a.right > room.right + 1 || a.top < room.top - 1 || a.bottom > room.bottom + 1)
        bad.push([name, one.textContent, "is cut off"]);
      for (const other of texts.slice(i + 1)) {
        const b = rect(other);
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 1) bad.push([name, one.textContent, "is on", other.textContent]);
      }
    });
    const size = plot._fullLayout._size;
    for (const label of all(".annotation-text", plot))
      if (rect(label).left < room.left + size.l + size.w) bad.push([name, label.textContent, "is over the curves"]);
  }
  for (const grid of all(".panels")) {
    const there = [...grid.children].filter((panel) => !panel.hidden).map(rect);
    if (!there.length) bad.push(["a grid", "has no panel"]);
    else if (there[there.length - 1].right < rect(grid).right - 2) bad.push(["a grid", "ends before its last place"]);
  }
  for (const part of all("section"))
    if (!all("p, table, dl, .plot", part).some((node) => rect(node).height)) bad.push([part.id, "is empty"]);
  if (all(".nothing:not([hidden])").length) bad.push(["a section", "has nothing to show"]);
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) bad.push(["the page", "is wider than the screen"]);
  return bad;
}

// The first column of a table before and after the table is moved to its end.
function moved() {
  const holder = document.querySelector("#table .scroll"), first = holder.querySelector("tbody th");
  holder.scrollIntoView({ behavior: "instant", block: "center" });
  const before = rect(first).left;
  holder.scrollLeft = 1e6;
  const cell = rect(first), room = rect(holder);
  const over = document.elementFromPoint(cell.left + cell.width / 2, cell.top + cell.height / 2);
  return { by: holder.scrollLeft, shift: cell.left - before, start: cell.left - room.left, share: cell.width / room.width,
    seen: first.contains(over), background: getComputedStyle(first).backgroundColor };
}

// Every group of buttons, with the places of its buttons.
function buttons() {
  return all("main .choices").map((group) => ({
    left: rect(group).left, right: rect(group).right,
    buttons: all("span", group).map((one) => ({ left: rect(one).left, right: rect(one).right, top: Math.round(rect(one).top),
      height: rect(one).height, cut: one.scrollWidth > one.clientWidth })),
  }));
}

const parts = (colour) => colour.match(/[\d.]+/g).map(Number);

// How different two colours are in brightness, from 1 to 21, as the guidelines for the web (WCAG) count.
function contrast(one, other) {
  const curve = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [red, green, blue] = parts(colour).slice(0, 3).map((part) => curve(part / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dim, bright] = [light(one), light(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dim + 0.05);
}

// Texts whose contrast with what is behind them is below the 4.5 that those guidelines ask for (AA).
function faint() {
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor, alpha = parts(colour)[3];
      if (alpha === undefined || alpha === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  for (const node of all("body *")) {
    if (node.closest("script, style, noscript") || !node.checkVisibility()) continue;
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())) continue;
    const style = getComputedStyle(node), ink = node.closest("svg") ? style.fill : style.color;
    if (contrast(ink, behind(node)) < 4.5) low.push([node.textContent.slice(0, 40), ink, behind(node)]);
  }
  return low;
}

// What the first panel draws from the back to the front, and the colours of its curves as they are drawn and explained.
const firstPlot = () => document.querySelector("#curves .plot:not([hidden])");
const layers = () => firstPlot().data.map((trace) => (trace.fill ? "band" : "curve"));
const curveColours = () => all(".scatterlayer .js-line", firstPlot()).filter((path) => parseFloat(path.style.strokeWidth)).map((path) => path.style.stroke);
const legendColours = () => all(".legend li:not([hidden]) line").map((line) => getComputedStyle(line).stroke);

// Every verdict's badge: its text and colour, and whether it stands above its claim.
const badges = () => all(".claim").flatMap((claim) => all(".chip", claim).map((chip) => ({
  text: chip.innerText, colour: getComputedStyle(chip).backgroundColor, above: rect(chip).bottom <= rect(claim.querySelector("h3")).top,
})));

const background = (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor;
const drawnInk = () => document.querySelector("#curves .plot .gtitle").style.fill;
const curvesShown = () => all("#curves .plot:not([hidden])").length;
const texts = (selector) => all(selector).filter((node) => node.checkVisibility()).map((node) => node.innerText);
const values = (selector) => all(selector).map((node) => node.value);
