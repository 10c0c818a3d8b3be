// Inside one run. Maps are stored as bytes, a number between two ends each.
function bytes(map) {
  const raw = atob(map.bytes), rows = [];
  for (let r = 0; r < map.rows; r++) {
    const row = new Array(map.columns);
    for (let c = 0; c < map.columns; c++) row[c] = map.low + (map.high - map.low) * raw.charCodeAt(r * map.columns + c) / 255;
    rows.push(row);
  }
  return rows;
}

function maps() {
  const all = view.maps;
  if (!all || !all.length) return;
  const node = section("maps", "Inside one run",
    "The world, and what one run (its first seed) knew of it after N samples per step. σ is the standard deviation of the estimate: " +
    "it is large where little is known. Dots are the places where the run looked at this step.", "One run");
  const now = state.maps;
  Object.assign(now, { world: 0, run: 0, size: all[0].runs[0].sizes.length - 1, step: 0 });
  const controls = make("div", { class: "controls" });
  node.append(controls);
  const places = {};
  for (const [title, names] of [["The world", ["reward", "law"]], ["What the run knew", ["sigma", "value", "policy"]]]) {
    const grid = make("div", { class: "panels" });
    node.append(make("h3", {}, title), grid);
    for (const name of names) grid.append(places[name] = make("div", { class: "plot map", role: "img", "data-map": name }));
  }
  const output = make("output", {});
  const slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "samples per step", oninput: () => { now.size = Number(slider.value); draw(); } });
  const pick = (name) => (key) => { now[name] = Number(key); draw(); };
  const index = (list) => Object.fromEntries(list.map((text, i) => [String(i), text]));
  controls.append(
    choices("world", "World", index(all.map((each) => each.title)), "0", pick("world")),
    choices("run", "Explorer", index(all[0].runs.map((each) => each.label)), "0", pick("run")),
    choices("step", "Step", index(all[0].steps.map((h) => "h = " + h)), "0", pick("step")),
    make("label", { class: "slider" }, "N", slider, output));
  function draw() {
    const world = all[now.world], run = world.runs[Math.min(now.run, world.runs.length - 1)], theme = themed();
    slider.max = String(run.sizes.length - 1);
    now.size = Math.min(now.size, run.sizes.length - 1);
    slider.value = String(now.size);
    output.textContent = run.sizes[now.size] + " samples";
    const moment = run.moments[now.size], at = moment.steps[now.step];
    heat(places.reward, theme, world.reward, "reward r(s, a)", "action a");
    heat(places.law, theme, world.law, `P(s' | s, a = ${world.law_action.toFixed(2)})`, "next state s'");
    heat(places.sigma, theme, at.sigma, `σ at h = ${world.steps[now.step]}`, "action a", at.visited);
    heat(places.value, theme, moment.value, "the plan's V", "state s", null, "step h");
    heat(places.policy, theme, moment.policy, "the plan's action", "state s", null, "step h");
  }
  repaints.push(draw);
}

function heat(place, theme, map, title, across, visited, down) {
  const z = bytes(map), H = map.rows;
  const x = Array.from({ length: map.columns }, (_, i) => (map.columns > 1 ? i / (map.columns - 1) : 0));
  const y = down ? Array.from({ length: H }, (_, i) => i + 1) : Array.from({ length: H }, (_, i) => (H > 1 ? i / (H - 1) : 0));
  const traces = [{ z, x, y, type: "heatmap", colorscale: "Viridis", zmin: map.low, zmax: map.high, colorbar: { thickness: 10, outlinewidth: 0, tickfont: { size: 10 }, nticks: 6 },
    hovertemplate: `%{z:.3f} at %{x:.2f}, %{y:.2f}<extra></extra>` }];
  if (visited) traces.push({ x: visited.action, y: visited.state, mode: "markers", marker: { size: 4, color: "#ffffff", line: { color: "#000000", width: 0.6 } }, hoverinfo: "skip", cliponaxis: false });
  Plotly.react(place, traces, layout(theme, { height: 290, title: heading(title, 13), margin: { l: 52, r: 4, t: 34, b: 46 },
    xaxis: { title: { text: across, standoff: 6 }, zeroline: false, showgrid: false, range: [0, 1] },
    yaxis: { title: { text: down || "state s", standoff: 6 }, zeroline: false, showgrid: false, ...(down ? { autorange: "reversed" } : { range: [0, 1] }) } }), OPTIONS);
  place.setAttribute("aria-label", title);
}
