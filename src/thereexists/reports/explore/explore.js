// The page of `thereexists explore`. It asks its own server for the frames of an input and draws them; every text of
// the witness is written with textContent. A frame is a layer that changes something; `layer` may stand between frames.
"use strict";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const RIGHT = 24, LANE = 34;
let LEFT = 70;
const widthOf = (picture) => Math.max(260, Math.round(picture.parentNode.clientWidth));  // one unit is one pixel

let about = null;     // what the server told of the witness
let seen = null;      // the answer to the last input: frames, output, target
let layer = 0;        // the layer number that is shown, 0 = the input
let timer = null;     // while playing

// --- small helpers ---------------------------------------------------------------------------------------------------

function make(tag, attributes = {}, text = null, svg = false) {
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
}

const draw = (parent, tag, attributes, text = null) => parent.appendChild(make(tag, attributes, text, true));

function show(value) {
  if (value === null || value === undefined) return "no number";
  if (Number.isInteger(value) || Math.abs(value) >= 1e6) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(5)));
}

const symlog = (v) => v === null ? 0 : Math.sign(v) * Math.log10(1 + Math.abs(v));
const frameAt = (number) => {  // the last frame that is not behind this layer
  let found = 0;
  seen.frames.forEach((frame, i) => { if (frame.layer <= number) found = i; });
  return found;
};
const stageOf = (number) => about.stages.find((s) => number >= s.first && number < s.first + s.depth);

// A page that was written to a file has its answers with it: the nearest stored input is the one that is shown.
const stored = $("stored") && JSON.parse($("stored").textContent);

function recall(what, body) {
  if (what === "witness") return stored.about;
  if (what === "attention") throw new Error("This page stores the attention of layers that change something.");
  if (body.words) {
    const found = stored.runs.find((run) => run.input.words.join(" ") === body.words.join(" "));
    if (!found) throw new Error("This page stores the answers to the inputs in the list; thereexists explore takes any.");
    return found;
  }
  const flat = body.x.flat();
  const far = (run) => run.input.x.flat().reduce((sum, v, i) => sum + (v - flat[i]) ** 2, 0);
  return stored.runs.reduce((best, run) => far(run) < far(best) ? run : best);
}

async function ask(what, body) {
  if (stored) return recall(what, body);
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch("api/" + what, options);
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

function complain(error) {
  $("error").textContent = error ? error.message : "";
  $("error").hidden = !error;
}

// --- the input -------------------------------------------------------------------------------------------------------

let input = null;      // what is sent: {x: [[…]]} or {words: […]}
let busy = false, waiting = false;

async function changed() {  // one question at a time; while it runs, only the newest input waits
  if (busy) { waiting = true; return; }
  busy = true;
  const at = seen ? frameAt(layer) : 0, exact = seen && seen.frames[at].layer === layer;
  try {
    const answer = await ask("run", input);
    complain(null);
    seen = answer;
    if (stored && answer.input.x) snap(answer.input.x);
    $("frame").max = seen.frames.length - 1;
    if (exact) layer = seen.frames[Math.min(at, seen.frames.length - 1)].layer;
    for (const part of $("ribbon").children) {  // as wide as the stage has changes: the slider below counts those
      part.style.flexGrow = .4 + seen.frames.filter((frame) => frame.stage === part.dataset.stage).length;
    }
    drawLog();
    drawCompare();
    drawFrame();
    $("timing").textContent = `${about.depth.toLocaleString("en-US")} layers, ${seen.frames.length - 1} of them change ` +
      (stored ? "this input; stored in this page. " : `this input; computed in ${seen.milliseconds} ms. `) +
      (seen.complete ? (seen.same ? "The last frame is the network's own output, bit for bit." : "") :
        "There are more changes than the page shows; target and output are those of the whole network.");
  } catch (error) {
    complain(error);
  }
  busy = false;
  if (waiting) { waiting = false; changed(); }
}

let snap = () => {};   // put the sliders where a stored input is

function sliders() {
  const box = $("input"), places = [];
  input = { x: about.start.map((token) => token.slice()) };
  const all = [];
  for (let j = 0; j < about.n; j++) for (let i = 0; i < about.d; i++) {
    const id = `x-${j}-${i}`, low = about.low[i], high = about.high[i];
    const row = make("div", { class: `slider hue${j % 6}` });
    const label = make("label", { for: id });
    label.append(make("span", { class: "dot" }), about.d === 1 ? `token ${j}` : `token ${j}, ${i}`);
    const step = (high - low) / (about.positions || 1000), inset = about.positions ? step / 2 : 0;
    const range = make("input", { id, type: "range", min: low + inset, max: high - inset, step: about.positions ? "any" : step });
    const value = make("output", { for: id });
    const put = (v) => { range.value = v; input.x[j][i] = Math.min(high, Math.max(low, v)); value.textContent = show(v); };
    put(about.start[j][i]);
    places.push([j, i, put]);
    range.addEventListener("input", () => { put(Number(range.value)); changed(); });
    row.append(label, range, value);
    box.append(row);
    all.push(() => put(low + Math.round(1000 * Math.random()) / 1000 * (high - low)));
  }
  snap = (x) => places.forEach(([j, i, put]) => put(x[j][i]));
  const random = make("button", { id: "random" }, "Random input");
  random.addEventListener("click", () => { all.forEach((draw) => draw()); changed(); });
  box.append(random);
}

function words() {
  const box = $("input");
  box.className = "words";
  input = { words: about.start };
  const field = make("input", { id: "words", type: "text", autocomplete: "off", spellcheck: "false" });
  const list = make("select", { id: "example" });
  about.examples.forEach((example, i) => list.append(make("option", { value: i }, example.join(" "))));
  field.value = about.start.join(" ");
  field.addEventListener("input", () => {
    input = { words: field.value.split(/\s+/).filter(Boolean) };
    changed();
  });
  list.addEventListener("change", () => {
    input = { words: about.examples[list.value] };
    field.value = input.words.join(" ");
    changed();
  });
  box.append(make("label", { for: "words" }, `Tokens, ${about.fixed ? "exactly" : "at most"} ${about.n}`), field,
    make("label", { for: "example" }, about.offered || "or a stored input"), list);
}

// --- where we are ----------------------------------------------------------------------------------------------------

function go(number) {
  layer = Math.max(0, Math.min(about.depth, Math.round(number) || 0));
  drawFrame();
}

function nextChange() {
  const next = seen.frames.find((frame) => frame.layer > layer);
  if (next) go(next.layer); else stop();
  return Boolean(next);
}

const previousChange = () => go(seen.frames[Math.max(0, frameAt(layer) - (seen.frames[frameAt(layer)].layer === layer))].layer);

function play() {
  if (timer) return stop();
  if (frameAt(layer) === seen.frames.length - 1) go(0);
  timer = setInterval(nextChange, 1000);
  $("play").textContent = "Pause";
  $("play").setAttribute("aria-pressed", "true");
}

function stop() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
  $("play").setAttribute("aria-pressed", "false");
}

// The state is in the address, #x=0.7;0.1&layer=30, so that a link shows what its sender saw.
function remember() {
  const state = new URLSearchParams();
  if (input.x) state.set("x", input.x.map((token) => token.map((v) => Number(v.toPrecision(6))).join(",")).join(";"));
  else state.set("words", input.words.join(" "));
  state.set("layer", layer);
  history.replaceState(null, "", "#" + state);
}

function recollect() {
  const state = new URLSearchParams(location.hash.slice(1));
  const x = (state.get("x") || "").split(";").map((token) => token.split(",").map(Number));
  const right = x.length === about.n && x.every((token) => token.length === about.d && token.every(Number.isFinite));
  if (about.low && right) { input.x = x; snap(x); }
  if (!about.low && state.get("words")) { input = { words: state.get("words").split(" ") }; $("words").value = state.get("words"); }
  return Number(state.get("layer")) || 0;
}

function drawFrame() {
  if (!seen) return;
  remember();
  const at = frameAt(layer), frame = seen.frames[at], here = frame.layer === layer, stage = stageOf(layer);
  $("frame").value = at;
  $("frame").setAttribute("aria-valuetext", `${at} of ${seen.frames.length - 1}: ${frame.says}`);
  $("layer").value = layer;
  $("where").textContent = `Change ${at} of ${seen.frames.length - 1}` +
    (stage ? `; ${stage.name}, layer ${layer - stage.first + 1} of ${stage.depth.toLocaleString("en-US")}` : "; before the first layer");
  $("says").textContent = here ? frame.says : "This layer changes nothing.";
  for (const part of $("ribbon").children) part.classList.toggle("here", Boolean(stage) && part.dataset.stage === stage.name);
  for (const button of $("log").querySelectorAll("button")) {
    const current = here && Number(button.dataset.layer) === layer;
    if (current) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
    if (current) $("log").scrollTop = button.offsetTop - $("log").offsetTop - 60;
  }
  if (about.kind === "columns") drawColumns(at, here); else if (about.kind === "doubling") drawDoubling(at);
  else if (about.kind === "counting") drawCounting(at); else drawStream(at);
  drawAttention(frame, here, stage);
}

function drawLog() {
  $("log").replaceChildren(...seen.frames.map((frame) => {
    const item = make("li"), button = make("button", { "data-layer": frame.layer }, frame.says);
    button.prepend(make("small", {}, frame.layer ? `layer ${frame.layer.toLocaleString("en-US")}, ${frame.stage}` : "input"));
    button.addEventListener("click", () => { stop(); go(frame.layer); });
    item.append(button);
    return item;
  }));
}

// --- the columns of the faithful construction ------------------------------------------------------------------------

function drawColumns(at, here) {
  const frame = seen.frames[at], before = seen.frames[Math.max(0, at - 1)], picture = $("picture"), WIDTH = widthOf(picture);
  const entries = frame.stage === "input" || frame.stage === "quantise";  // before: where the entries are; then: the ids
  const lanes = [];
  for (let j = 0; j < about.n; j++) for (let i = 0; i < (entries ? about.d : 1); i++) lanes.push([j, i]);
  const height = lanes.length * LANE + 56;
  const place = (f, j, i) => entries ? f.state[j][i] : f.ids[j];
  let ends, scale;
  if (entries) {
    const edges = about.edges.flat();
    ends = [Math.min(...edges), Math.max(...edges)];
    scale = (v) => LEFT + (v - ends[0]) / (ends[1] - ends[0]) * (WIDTH - LEFT - RIGHT);
  } else {
    const all = seen.frames.filter((f) => f.layer).flatMap((f) => f.ids.map(symlog));
    ends = [Math.min(0, ...all), Math.max(1, ...all)];
    scale = (v) => LEFT + (symlog(v) - ends[0]) / (ends[1] - ends[0]) * (WIDTH - LEFT - RIGHT);
  }
  const key = `${entries} ${ends} ${WIDTH}`;
  if (picture.dataset.key !== key) {  // axes, lanes and dots once; later frames only move the dots
    picture.dataset.key = key;
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    const ground = draw(picture, "g", {}), foot = lanes.length * LANE + 12;
    for (const [row, [j, i]] of lanes.entries()) {
      const y = row * LANE + 22;
      if (entries) about.edges[i].forEach((e) => draw(ground, "path", { class: "edge", d: `M${scale(e)},${y - 11}V${y + 11}` }));
      draw(ground, "path", { class: "lane", d: `M${LEFT},${y}H${WIDTH - RIGHT}` });
      draw(ground, "text", { x: LEFT - 14, y: y + 4, "text-anchor": "end" }, entries && about.d > 1 ? `token ${j}, ${i}` : `token ${j}`);
    }
    ticks(ends, entries).forEach(([v, label]) => draw(ground, "text", { x: scale(v), y: foot + 14, "text-anchor": "middle" }, label));
    draw(ground, "text", { x: (LEFT + WIDTH - RIGHT) / 2, y: foot + 36, "text-anchor": "middle" },
      entries ? "entry, with the edges of the cells" : "id uᵀz in steps of the grid, log(1 + id)");
    draw(picture, "g", { id: "trails" });
    for (const [j] of lanes) {
      const token = draw(picture, "g", { class: `token hue${j % 6}` });
      draw(token, "circle", { r: 7 });
      draw(token, "text", { class: "value", y: 4 });
    }
  }
  const trails = picture.querySelector("#trails");
  trails.replaceChildren();
  [...picture.querySelectorAll(".token")].forEach((token, row) => {
    const [j, i] = lanes[row], y = row * LANE + 22, x = scale(place(frame, j, i));
    const moved = here && frame.moved.includes(j) && place(before, j, i) !== place(frame, j, i);
    if (moved) {
      const from = scale(place(before, j, i));
      draw(trails, "path", { class: `trail hue${j % 6}`, d: `M${from},${y}H${x}` });
      draw(trails, "circle", { class: `ghost hue${j % 6}`, cx: from, cy: y, r: 6 });
    }
    token.style.transform = `translate(${x}px, ${y}px)`;
    const valued = seen.frames.slice(0, at + 1).some((f) => f.stage === "value" && f.moved.includes(j));
    const text = token.querySelector("text");
    text.textContent = entries ? show(frame.state[j][i]) : valued ? frame.state[j].map(show).join(" ") : show(frame.ids[j]);
    text.setAttribute("class", moved ? "value moved" : "value");
    const left = x > WIDTH - RIGHT - 8 * text.textContent.length - 12;  // no room at the right of the dot
    text.setAttribute("x", left ? -12 : 12);
    text.setAttribute("text-anchor", left ? "end" : "start");
  });
  picture.setAttribute("aria-label", lanes.map(([j, i]) => `token ${j} at ${show(place(frame, j, i))}`).join(", "));
  $("note").textContent = entries ? "Each token in the range of its position; the quantiser takes it to the lower edge of its cell."
    : "The id of each column. A dashed trail shows what this layer moved; once its value is mapped, a token shows the value.";
}

function ticks([low, high], linear) {
  if (!linear) {
    const every = Math.max(1, Math.ceil((high - low) / 9)), out = [];
    for (let k = Math.ceil(low); k <= high; k += every) {
      out.push([Math.sign(k) * (10 ** Math.abs(k) - 1), k === 0 ? "0" : `${k < 0 ? "−" : ""}10${superscript(Math.abs(k))}`]);
    }
    return out;
  }
  const raw = (high - low) / 6, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw), out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) out.push([v, show(Number(v.toPrecision(8)))]);
  return out;
}

const superscript = (k) => String(k).replace(/\d/g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]);

// --- the residual stream of a compact network ------------------------------------------------------------------------

function drawStream(at) {
  const frame = seen.frames[at], before = seen.frames[Math.max(0, at - 1)], picture = $("picture");
  const WIDTH = widthOf(picture), rows = frame.stream.length, columns = about.rows, side = Math.min(22, (WIDTH - LEFT - 10) / columns);
  const tall = Math.max(12, Math.min(22, 4 * side)), height = rows * (tall + 2) + 40;
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
  const most = Math.max(1, ...frame.stream.flat().map((v) => Math.abs(symlog(v))));
  frame.stream.forEach((token, j) => {
    const y = j * (tall + 2) + 6;
    draw(picture, "text", { x: LEFT - 10, y: y + tall / 2 + 4, "text-anchor": "end" }, `token ${j}`);
    token.forEach((v, i) => {
      if (!v && v !== null) return;
      const cell = { class: v < 0 ? "minus" : "plus", x: LEFT + i * side, y, width: Math.max(side - .6, .6), height: tall };
      const now = draw(picture, "rect", cell);
      now.setAttribute("fill-opacity", (.25 + .75 * Math.abs(symlog(v)) / most).toFixed(2));
      if (at && before.stream[j][i] !== v) now.setAttribute("stroke", "currentColor");
    });
  });
  draw(picture, "text", { x: LEFT, y: height - 12 }, `rows 0 to ${columns - 1} of the residual stream`);
  picture.setAttribute("aria-label", "The residual stream: " + frame.stream.map((token, j) =>
    `token ${j}, ${token.filter((v) => v).length} rows not zero`).join("; "));
  $("note").textContent = "One line for each token, one cell for each row of the stream; zero is blank, negative numbers " +
    "have the second colour, an outline marks what this block changed." +
    (about.rows_left_out ? ` ${about.rows_left_out.toLocaleString("en-US")} more rows are not drawn.` : "");
}

// --- the doubling tree of an automaton -------------------------------------------------------------------------------

function drawDoubling(at) {
  const frame = seen.frames[at], picture = $("picture"), WIDTH = widthOf(picture), held = frame.held.slice(1);
  const n = held.length, step = Math.min(40, (WIDTH - LEFT - 10) / Math.max(1, n)), tall = 18, top = 26;
  const x = (j) => LEFT + (j - .5) * step, y = (j) => top + (j - 1) * tall;
  const wide = LEFT + n * step + 16, told = wide + 40 < WIDTH;
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${top + n * tall + 24}`);
  seen.words.forEach((word, i) => draw(picture, "text", { x: x(i + 1), y: 14, "text-anchor": "middle" }, word));
  held.forEach((h) => {
    const j = h.position, end = x(j) + .4 * step, start = h.first > j ? end : x(h.first) - .4 * step;
    draw(picture, "text", { x: LEFT - 10, y: y(j) + 9, "text-anchor": "end" }, `position ${j}`);
    draw(picture, "rect", { class: h.first === 1 ? "f1" : "f0", x: start, y: y(j), width: Math.max(1, end - start), height: 8, rx: 3 });
    if (told) draw(picture, "text", { x: wide, y: y(j) + 9 }, h.map.map((r) => r === null ? "·" : r).join(" "));
  });
  held.filter((h) => h.fetched).forEach((h) => {  // above all bars
    draw(picture, "path", { class: "fetch", d: `M${x(h.fetched)},${y(h.fetched) + 4}V${y(h.position) + 4}` });
    draw(picture, "circle", { class: "fetch", cx: x(h.fetched), cy: y(h.position) + 4, r: 2 });
  });
  picture.setAttribute("aria-label", held.map((h) => `position ${h.position} holds symbols ${h.first} to ${h.last}`).join("; "));
  $("note").textContent = "A bar is the segment whose map a position holds, in the second colour once it is the whole prefix; a line " +
    "leads from the position whose map was fetched." +
    (told ? " At the right the map: the state to which 0, 1, 2, … is led, · for the dead one." : "");
}

// --- the counts of a commutative group ---------------------------------------------------------------------------------

function drawCounting(at) {
  const frame = seen.frames[at], picture = $("picture"), WIDTH = widthOf(picture), lanes = frame.lanes, tall = 20, top = 14;
  const room = 24 + 6.6 * Math.max(...lanes.map((lane) => lane.text.length)), told = WIDTH - LEFT - room > 90;  // else: dots only
  const right = told ? WIDTH - room : WIDTH - 30, x = (share) => LEFT + share * (right - LEFT);
  const ends = at < 1 ? null : at < 2 ? ["0", "1"] : ["position 0", `position ${Math.max(1, lanes.length - 1)}`];
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${top + lanes.length * tall + 24}`);
  lanes.forEach((lane, j) => {
    const y = top + j * tall;
    draw(picture, "text", { x: LEFT - 10, y: y + 4, "text-anchor": "end" }, j ? `${j}: ${seen.words[j - 1]}` : "0");
    draw(picture, "path", { class: "lane", d: `M${LEFT},${y}H${right}` });
    lane.marks.forEach((share, g) => draw(draw(picture, "g", { class: `token hue${g % 6}` }), "circle",
      { cx: x(share), cy: y + (g - (lane.marks.length - 1) / 2) * Math.min(5, 12 / lane.marks.length), r: 3.5 }));
    if (told) draw(picture, "text", { x: right + 12, y: y + 4 }, lane.text);
  });
  if (ends) ends.forEach((end, i) => draw(picture, "text", { x: x(i), y: top + lanes.length * tall + 8, "text-anchor": "middle" }, end));
  picture.setAttribute("aria-label", lanes.map((lane, j) => `position ${j}: ${lane.text}`).join("; "));
  $("note").textContent = at < 1 ? "A line for every position, with its symbol." : at < 2
    ? "A dot for every counter: its share of the positions so far. The last number is the share of the flag, 1/(position + 1)."
    : "A dot for every counter: the position that its head looks up, which is the count; the counts lead to the state.";
}

// --- target and output -----------------------------------------------------------------------------------------------

function table(head, rows) {
  const out = make("table"), line = (tag, cells) => {
    const tr = make("tr");
    cells.forEach((cell, i) => tr.append(make(tag, i ? { class: "number" } : tag === "th" ? { scope: "col" } : {}, cell)));
    return tr;
  };
  const thead = make("thead"), tbody = make("tbody");
  thead.append(line("th", head));
  tbody.append(...rows.map((row) => line("td", row)));
  out.append(thead, tbody);
  return out;
}

function drawCompare() {
  const picture = $("compare");
  if (!about.low) {  // words
    picture.setAttribute("viewBox", "0 0 1 1");
    picture.parentNode.hidden = true;
    const said = (words) => words === null ? "nothing is stored for this input" : words.join(" ");
    $("compare-table").replaceChildren(table(["", "tokens"], [[about.compared || "stored", said(seen.stored)], ["network", said(seen.answer)]]));
    return;
  }
  const cells = [];
  seen.output.forEach((token, j) => token.forEach((v, i) => cells.push([j, i, v, seen.target ? seen.target[j][i] : null])));
  const numbers = cells.flatMap(([, , v, f]) => [v, f]).filter((v) => v !== null);
  const WIDTH = widthOf(picture), low = Math.min(...numbers, ...about.low), high = Math.max(...numbers, ...about.high);
  const scale = (v) => LEFT + (v - low) / (high - low || 1) * (WIDTH - LEFT - RIGHT);
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${cells.length * LANE + 6}`);
  picture.replaceChildren();
  cells.forEach(([j, i, v, f], row) => {
    const y = row * LANE + 20;
    draw(picture, "text", { x: LEFT - 14, y: y + 4, "text-anchor": "end" }, about.d > 1 ? `token ${j}, ${i}` : `token ${j}`);
    draw(picture, "path", { class: "lane", d: `M${LEFT},${y}H${WIDTH - RIGHT}` });
    if (f !== null && v !== null) draw(picture, "path", { class: "gap", d: `M${scale(f)},${y}H${scale(v)}` });
    if (f !== null) draw(picture, "circle", { class: "ring", cx: scale(f), cy: y, r: 7 });
    if (v !== null) draw(picture, "circle", { class: "f1", cx: scale(v), cy: y, r: 5 });
  });
  $("compare-table").replaceChildren(table(["output", "target ○", "network ●", "|difference|"], cells.map(([j, i, v, f]) => [
    about.d > 1 ? `token ${j}, feature ${i}` : `token ${j}`, f === null ? "not stored" : show(f), show(v),
    f === null || v === null ? "–" : show(Math.abs(v - f))])));
}

// --- attention of any layer ------------------------------------------------------------------------------------------

let asked = "";

async function drawAttention(frame, here, stage) {
  const question = JSON.stringify([input, layer]);
  asked = question;
  if (!stage || !stage.halves.includes("attention")) {
    const other = about.stages.find((s) => s.halves.includes("attention"));
    $("attention-note").textContent = "This layer has no attention.";
    const button = make("button", {}, other ? `Go to the first change of ${other.name}` : "");
    button.addEventListener("click", () => { stop(); go((seen.frames.find((f) => f.stage === other.name) || { layer: other.first }).layer); });
    $("heads").replaceChildren(...(other ? [button] : []));
    return;
  }
  let heads = here ? frame.attention : null;
  try {
    if (!heads) heads = (await ask("attention", { ...input, layer })).heads;
  } catch (error) { return complain(error); }
  if (asked !== question || !heads) return;  // somebody went on meanwhile
  $("attention-note").textContent = `Layer ${layer.toLocaleString("en-US")}: row = who attends, column = to whom.`;
  $("heads").replaceChildren(...heads.slice(0, 12).map(heat));
}

function heat(weights, h) {
  const numbers = weights.length <= 8, out = make("table", { class: numbers ? "heat numbers" : "heat" });
  out.append(make("caption", {}, `head ${h}`));
  const head = make("tr");
  head.append(make("td"), ...weights.map((_, k) => make("th", { scope: "col" }, numbers || k % 8 === 0 ? k : "")));
  out.append(head);
  weights.forEach((row, j) => {
    const line = make("tr");
    line.append(make("th", { scope: "row" }, j));
    row.forEach((w, k) => {
      const cell = make("td", { title: `token ${j} to token ${k}: ${show(w)}` }, numbers ? (w === null ? "?" : String(Number(w.toFixed(2)))) : "");
      cell.style.setProperty("--w", w || 0);
      if (w > .55) cell.className = "strong";
      line.append(cell);
    });
    out.append(line);
  });
  return out;
}

// --- beginning -------------------------------------------------------------------------------------------------------

async function begin() {
  try {
    about = await ask("witness");
  } catch (error) { return complain(error); }
  document.title = `${about.title}: thereexists explore`;
  $("title").textContent = about.title;
  $("about").textContent = about.about;
  $("facts").replaceChildren(...Object.entries(about.facts).map(([name, value]) => {
    const item = make("li");
    item.append(make("b", {}, name), String(value));
    return item;
  }));
  $("layer").max = about.depth;
  $("depth").textContent = `of ${about.depth.toLocaleString("en-US")}`;
  $("ribbon").replaceChildren(...about.stages.map((stage) => {
    const part = make("span", {}, `${stage.name} ${stage.depth.toLocaleString("en-US")}`);
    part.dataset.stage = stage.name;
    return part;
  }));
  LEFT = about.d > 1 ? 88 : 70;
  if (about.low) sliders(); else words();
  const on = (id, what) => $(id).addEventListener("click", () => { if (seen) { stop(); what(); } });
  on("first", () => go(0));
  on("previous", previousChange);
  on("next", nextChange);
  on("last", () => go(seen.frames[seen.frames.length - 1].layer));
  on("back", () => go(layer - 1));
  on("step", () => go(layer + 1));
  $("play").addEventListener("click", () => { if (seen) play(); });
  $("frame").addEventListener("input", () => { stop(); go(seen.frames[$("frame").value].layer); });
  $("layer").addEventListener("change", () => { stop(); go(Number($("layer").value)); });
  document.addEventListener("keydown", (event) => {
    if (!seen || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, button, a")) return;
    const keys = { " ": play, ArrowRight: event.shiftKey ? () => go(layer + 1) : nextChange,
      ArrowLeft: event.shiftKey ? () => go(layer - 1) : previousChange, Home: () => go(0),
      End: () => go(seen.frames[seen.frames.length - 1].layer) };
    if (!keys[event.key]) return;
    if (event.key !== " ") stop();
    keys[event.key]();
    event.preventDefault();
  });
  new ResizeObserver(() => { if (seen) { drawCompare(); drawFrame(); } }).observe($("picture").parentNode);
  const from = recollect();
  await changed();
  if (seen && from) go(from);
}

begin();
