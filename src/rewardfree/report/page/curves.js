// Gaps against what they cost: a panel for each world, and for draws of a world.
function curves() {
  const node = section("curves", "Gap against samples, episodes or steps",
    (single(Math.max) ? "One run, so there are no confidence intervals. " : `Mean over runs; bands are ${Math.round(100 * view.confidence)}% confidence intervals of the mean. `) +
    "Horizontal lines are policies that need no data. " + (hasRecorded()
      ? "Crosses are the authors' recorded means, of the same algorithm planned in the same way. " : "") +
    "Hover over a curve for its numbers.", "Curves");
  const pick = (name) => (key) => { state[name] = key; redraw(); };
  const planners = Object.fromEntries(Object.entries(view.planners).map(([key, planner]) => [key, planner.label]));
  node.append(make("div", { class: "controls" },
    choices("axis", "Against", view.axes, state.axis, pick("axis")),
    choices("measure", "Shown", view.measures, state.measure, pick("measure")),
    choices("planner", "Planned with", planners, state.planner, pick("planner"))));
  const grid = make("div", { class: "panels" + evenly(view.panels.length) });
  const nothing = make("p", { class: "nothing" }, "All curves are hidden: press one below to show it again.");
  node.append(grid, nothing, legend());
  const places = view.panels.map((panel) => {
    const place = make("div", { class: "plot", role: "img", "aria-label": "Gap curves: " + panel.title });
    grid.append(place);
    return place;
  });
  const some = (planner, axis) => view.panels.some((panel) => panel.tables[planner][axis]);
  redraws.push(() => {
    limit("axis", (axis) => some(state.planner, axis));
    limit("planner", (planner) => some(planner, state.axis));
    const shown = view.panels.map((panel) => view.strategies.filter((each) => !state.hidden.has(each.key))
      .map((strategy) => [strategy, chosenLine(panel.lines, strategy)]).filter(([, line]) => line && hasCost(line)));
    showPanels(places, shown.map((lines) => lines.length), nothing);
    view.panels.forEach((panel, i) => shown[i].length && drawCurves(places[i], panel, shown[i]));
  });
}

// Four panels stand two by two, not three and one.
const evenly = (count) => (count % 3 === 1 && count % 2 === 0 ? " pairs" : "");

function drawCurves(place, panel, lines) {
  const theme = themed(), bands = [], traces = [], heights = [];
  for (const [strategy, line] of lines) {
    const gaps = line.gaps[state.measure];
    if (line.runs > 1) bands.push(band(line, strategy, theme));
    traces.push(curve(line, strategy, theme));
    heights.push(...gaps.mean.map((m, i) => m + gaps.half[i]), ...gaps.mean.map((m, i) => m - gaps.half[i]));
    const theirs = recordedOf(panel, strategy, line.samples);
    if (!theirs) continue;
    heights.push(...theirs.y);
    traces.push({ x: theirs.x, y: theirs.y, mode: "markers", marker: { symbol: "x", size: 8, color: lineColour(strategy, theme) },
      hovertemplate: `authors' ${strategy.label}: %{y:.3f} at %{x}<extra></extra>` });
  }
  const levels = panel.levels.filter((level) => !state.hidden.has(level.key));
  const yaxis = gapAxis(theme, [...heights, ...levels.map((level) => level.gaps[state.measure])]);
  Plotly.react(place, [...bands, ...traces], layout(theme, { title: heading(panel.title), ...levelMarks(levels, yaxis, theme),
    xaxis: costAxis(theme, place, lines.flatMap(([, line]) => line[state.axis])), yaxis }), OPTIONS);
}

// Whether the authors recorded anything at our samples.
const hasRecorded = () => view.panels.some((panel) => panel.recorded.some((theirs) => panel.lines.some((line) => line.samples.some((n) => theirs.samples.includes(n)))));

// The authors' means where this panel can show them: at our samples, of the same algorithm, planned in the same way.
function recordedOf(panel, strategy, samples) {
  const theirs = panel.recorded.find((each) => each.strategy === strategy.key && each.planner === view.planners[state.planner].of[strategy.key]);
  if (!theirs || state.axis !== "samples" || state.measure !== "start") return null;
  const at = samples.map((n) => theirs.samples.indexOf(n)).filter((i) => i >= 0);
  return at.length ? { x: at.map((i) => theirs.samples[i]), y: at.map((i) => theirs.mean[i]), sd: at.map((i) => theirs.deviation[i]), runs: theirs.runs } : null;
}

// The intervals of a line; all of them lie behind all lines, or those would be dim in the dark.
function band(line, strategy, theme) {
  const gaps = line.gaps[state.measure], x = line[state.axis];
  const top = gaps.mean.map((m, i) => m + gaps.half[i]), bottom = gaps.mean.map((m, i) => m - gaps.half[i]);
  return { x: x.concat([...x].reverse()), y: top.concat(bottom.reverse()), fill: "toself", fillcolor: lineColour(strategy, theme), opacity: 0.17,
    line: { width: 0 }, hoverinfo: "skip", mode: "lines" };
}

function curve(line, strategy, theme) {
  const gaps = line.gaps[state.measure], stroke = lineColour(strategy, theme), many = line.runs > 1;
  const text = gaps.mean.map((m, i) => `${strategy.label}<br>${digits(m)}${many ? ` ± ${digits(gaps.half[i])} (sd ${digits(gaps.deviation[i])})` : ""}<br>` +
    Object.entries(view.axes).filter(([key]) => line[key][i] > 0).map(([key, name]) => `${cost(line[key][i])} ${name}`).join("<br>") + `<br>${many ? line.runs + " runs" : "one run"}`);
  return { x: line[state.axis], y: gaps.mean, mode: "lines+markers", line: { color: stroke, width: 2, dash: strategy.dash }, marker: { size: 5, color: stroke },
    text, hovertemplate: "%{text}<extra></extra>" };
}

const DASHES = { solid: "", dash: "6 3", dot: "2 3", dashdot: "7 3 2 3" };

function legend() {
  const list = make("ul", { class: "legend", "aria-label": "Curves: press to hide or show" });
  const drawn = new Set(view.panels.flatMap((panel) => panel.lines.map((line) => line.strategy)));
  const entries = view.strategies.filter((each) => drawn.has(each.key)).map((each) => [each, lineColour, each.dash]);
  const levels = new Map(view.panels.flatMap((panel) => panel.levels.map((level) => [level.key, level])));
  for (const level of levels.values()) entries.push([level, levelColour, levelDash(level)]);
  for (const [entry, stroke, dash] of entries) {
    const { key, label } = entry;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", "28"); svg.setAttribute("height", "10"); svg.setAttribute("aria-hidden", "true");
    svg.innerHTML = `<line x1="0" y1="5" x2="28" y2="5" stroke-width="2.5" stroke-dasharray="${DASHES[dash]}"/>`;
    redraws.push(() => { svg.firstChild.style.stroke = stroke(entry, themed()); });
    const button = make("button", { type: "button", "aria-pressed": "true", "data-curve": key, onclick: () => {
      state.hidden.has(key) ? state.hidden.delete(key) : state.hidden.add(key);
      button.setAttribute("aria-pressed", String(!state.hidden.has(key)));
      redraw();
    } }, svg, make("span", {}, label));
    const item = make("li", {}, button);
    list.append(item);
    if (drawn.has(key)) redraws.push(() => { item.hidden = !view.panels.some(({ tables }) => (tables[state.planner][state.axis] || { rows: {} }).rows[key]); });
  }
  return list;
}

function spread() {
  if (!view.spread || !view.spread.lines.length) return;
  const node = section("spread", "Spread over draws of the world",
    `Every line is one of ${view.spread.draws} draws of reward and transition law; it follows the switches above.`, "Spread");
  const kernels = [...new Set(view.spread.lines.map((line) => line.kernel))];
  const grid = make("div", { class: "panels" + evenly(kernels.length) });
  const nothing = make("p", { class: "nothing" }, "All curves are hidden: press one above to show it again.");
  node.append(grid, nothing);
  const places = kernels.map((kernel) => {
    const place = make("div", { class: "plot", role: "img", "aria-label": "Draws: " + kernel });
    grid.append(place);
    return place;
  });
  redraws.push(() => {
    const theme = themed();
    const shown = kernels.map((kernel) => view.strategies.filter((each) => !state.hidden.has(each.key))
      .map((strategy) => [strategy, chosenLine(view.spread.lines.filter((line) => line.kernel === kernel), strategy)])
      .filter(([, line]) => line && hasCost(line)));
    showPanels(places, shown.map((lines) => lines.length), nothing);
    kernels.forEach((kernel, k) => {
      if (!shown[k].length) return;
      const traces = shown[k].flatMap(([strategy, line]) => line.gaps[state.measure].map((gaps, draw) => ({ x: line[state.axis], y: gaps, mode: "lines",
        line: { color: lineColour(strategy, theme), width: 1, dash: strategy.dash }, opacity: 0.7, hovertemplate: `${strategy.label}, draw ${draw}: %{y:.3f}<extra></extra>` })));
      Plotly.react(places[k], traces, layout(theme, { title: heading(kernel), xaxis: costAxis(theme, places[k], shown[k].flatMap(([, line]) => line[state.axis])),
        yaxis: gapAxis(theme, traces.flatMap((trace) => trace.y)) }), OPTIONS);
    });
  });
}
