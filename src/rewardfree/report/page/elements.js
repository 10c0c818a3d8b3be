// What every part of the page is made of: the view, the reader's choices, and elements. Nothing here or in the
// other files computes a result: numbers come from the view as they are.
const view = JSON.parse(document.getElementById("view").textContent);
const main = document.getElementById("main");
const state = { axis: Object.keys(view.axes)[0], measure: "start", planner: view.planner, hidden: new Set(), maps: {} };
const redraws = [], repaints = [];  // what follows the choices, and what else has colours
const redraw = () => redraws.forEach((draw) => draw());
const digits = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(3));
const cost = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  for (const child of children) if (child !== null) node.append(child);
  return node;
}

function section(id, title, lead, short) {
  const node = make("section", { id, "aria-labelledby": id + "-title" },
    make("h2", { id: id + "-title" }, title), lead ? make("p", { class: "lead" }, lead) : null);
  main.append(node);
  document.getElementById("contents").append(make("a", { href: "#" + id }, short || title));
  return node;
}

// A row of radio buttons; `choose` is called with the key that was picked. One option is no choice: it is said.
function choices(name, legend, options, current, choose) {
  const entries = Object.entries(options);
  const row = make("span", { class: "choices" + (entries.length % 3 ? "" : " threes") });
  for (const [key, text] of entries) {
    const input = make("input", { type: "radio", name, value: key, onchange: () => choose(key) });
    input.checked = key === current;
    row.append(entries.length > 1 ? make("label", {}, input, make("span", {}, text)) : make("b", {}, text));
  }
  return make("fieldset", { "data-switch": name }, make("legend", {}, legend), row);
}

// A sentence that explains a word, where the word is first used.
function explanation(word) {
  const sentence = view.words[word];
  const start = sentence.indexOf(word);
  return make("p", { class: "word", "data-word": word },
    sentence.slice(0, start), make("dfn", {}, word), sentence.slice(start + word.length));
}

// The line of a strategy under the choice of planners, if the panel has one.
function chosenLine(lines, strategy) {
  return lines.find((each) => each.strategy === strategy.key && each.planner === view.planners[state.planner].of[strategy.key]);
}

// An option that leaves nothing to show cannot be picked.
function limit(name, possible) {
  for (const input of document.querySelectorAll(`input[name=${name}]`)) {
    input.disabled = !possible(input.value);
    input.parentNode.title = input.disabled ? "nothing was planned in this way" : "";
  }
}

// Whether the most, or the fewest, runs of a line are one: that has no interval.
const single = (end) => end(...view.panels.flatMap((panel) => panel.lines.map((line) => line.runs))) === 1;
const hasCost = (line) => line[state.axis].every((value) => value > 0);

// Panels that have something to show are there, the others are not; a sentence stands for none at all.
function showPanels(places, shown, nothing) {
  places.forEach((place, i) => { place.hidden = !shown[i]; });
  nothing.hidden = shown.some(Boolean);
}
