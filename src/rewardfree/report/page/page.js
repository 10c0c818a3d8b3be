// The page: what it says in words, then its sections.
function brief() {
  document.getElementById("lead").append(explanation("gap"));
  const words = Object.keys(view.words).filter((word) => word !== "gap");
  if (!words.length && !view.finding.length) return;
  const node = section("brief", view.finding.length ? "In short" : "Words");
  if (words.length) node.append(make("div", { class: "words" }, ...words.map(explanation)));
  for (const sentence of view.finding) node.append(make("p", { class: "finding" }, sentence));
}

function claims() {
  if (!view.claims || !view.claims.length) return;
  const node = section("claims", view.quick ? "What the paper claims" : "What the paper claims, and what we find", view.quick
    ? "The rule by which the full run judges each claim, and the comparisons that it would rest on. Nothing is judged here."
    : "Each verdict follows from the rule below it. The rules were stated in code after Figure 1 was known. " +
      "The thresholds 25%, 2 times and 80% are the first ones. One tie rule for all claims, “smallest” at every checkpoint and no verdict for the factor H came later. " +
      "Gaps are at the start, planned with the bonus.", "Claims");
  const kinds = { "holds": "holds", "does not hold": "fails", "depends on the axis": "depends", "depends on axis or ties": "depends" };
  for (const each of view.claims)
    node.append(make("article", { class: "claim" },
      make("header", {}, each.verdict ? make("span", { class: "chip " + (kinds[each.verdict] || "") }, each.verdict) : null, make("h3", {}, each.claim)),
      make("p", {}, each.rule),
      each.found.length ? make("details", {}, make("summary", {}, each.number), make("ul", {}, ...each.found.map((line) => make("li", {}, line)))) : make("p", {}, each.number)));
}

function about() {
  const node = section("about", "How it was made");
  const list = make("dl", {});
  for (const [name, value] of Object.entries(view.about || {}))
    list.append(make("dt", {}, name), make("dd", {}, name === "command" ? make("code", {}, value) : value));
  node.append(list);
}

// Light and dark follow the system until a reader chooses; paper is light.
function theme() {
  const root = document.documentElement;
  document.getElementById("theme").append(choices("theme", "Colours", { system: "system", light: "light", dark: "dark" }, "system", (key) => {
    root.dataset.theme = key;
    repaint();
  }));
  DARK.addEventListener("change", repaint);
  PRINT.addEventListener("change", repaint);
}

// How many labels have room is another question on another width.
function resized() {
  let waiting = null;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 100);
  });
}

document.getElementById("title").textContent = view.title;
document.getElementById("settings").textContent = view.settings;
const notice = document.getElementById("notice");
notice.textContent = view.quick;
notice.hidden = !view.quick;
brief(); claims(); curves(); tables(); spread(); maps(); about(); theme(); resized();
repaint();
document.documentElement.dataset.ready = "yes";
