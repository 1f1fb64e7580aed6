// The page of `thereexists explore`: what all its parts share. The parts are joined in the order of assets.py.
// The page asks its own server for the frames of an input and draws them; every text of the witness is written with
// textContent. A frame is a layer that changes something; `layer` may stand between frames.
"use strict";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const RIGHT = 24;
let LEFT = 70;
const widthOf = (picture) => Math.max(260, Math.round(picture.parentNode.clientWidth));  // one unit is one pixel

let about = null;     // what the server said about the witness
let seen = null;      // the answer to the last input: frames, output, target
let layer = 0;        // the layer number that is shown, 0 = the input, depth + 1 = the output
let input = null;     // what is sent: {x: [[…]]} or {words: […]}

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
  return Math.abs(value) < 1e-15 ? "0" : String(Number(value.toPrecision(5)));
}

const count = (value) => value.toLocaleString("en-US");
const symlog = (v) => v === null ? 0 : Math.sign(v) * Math.log10(1 + Math.abs(v));
const superscript = (k) => String(k).replace(/\d/g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).replace("-", "⁻");
const inWords = (stage) => stage.replaceAll("_", " ");
const asInAPaper = (text) => text.replace(/(≤ )?(\d+(?:\.\d+)?)e([+-]\d+)/g, (all, most, digits, power) =>  // 1.11e-16, 2^64
  Number(power) < -15 ? "< 10⁻¹⁵" : `${most || ""}${digits}·10${superscript(Number(power))}`)
  .replace(/(\d+)\^(\d+)/g, (all, base, power) => base + superscript(power));
const tokenName = (j, i) => about.d > 1 ? `token ${j}, ${i}` : `token ${j}`;
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
  if (what === "map") return recallMap(body);
  if (body.words) {
    const found = stored.runs.find((run) => run.input.words.join(" ") === body.words.join(" "));
    if (!found) throw new Error("This page stores the answers to the inputs in the list; thereexists explore takes any.");
    return found;
  }
  const flat = body.x.flat();
  const far = (run) => run.input.x.flat().reduce((sum, v, i) => sum + (v - flat[i]) ** 2, 0);
  return stored.runs.reduce((best, run) => far(run) < far(best) ? run : best);
}

function recallMap({ x, free }) {  // two axes through the table of all places, the last entry fastest
  const { axes, outputs } = stored.table, sides = x.flatMap(() => axes.map((axis) => axis.length));
  const nearest = (axis, v) => axis.reduce((best, p, k) => Math.abs(p - v) < Math.abs(axis[best] - v) ? k : best, 0);
  const at = x.flatMap((token) => token.map((v, i) => nearest(axes[i], v)));
  const [a, b] = free.map(([j, i]) => j * axes.length + i);
  const pick = (k, l) => {
    const places = at.slice();
    places[a] = l; places[b] = k;
    return outputs[places.reduce((sum, place, e) => sum * sides[e] + place, 0)];
  };
  const [across, up] = free.map(([, i]) => axes[i]);
  return { across, up, outputs: up.map((_, k) => across.map((_, l) => pick(k, l))) };
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

function table(head, rows, kind = "number") {
  const out = make("table"), line = (tag, cells) => {
    const tr = make("tr");
    cells.forEach((cell, i) => tr.append(make(tag, i ? { class: kind } : tag === "th" ? { scope: "col" } : {}, cell)));
    return tr;
  };
  const thead = make("thead"), tbody = make("tbody");
  thead.append(line("th", head));
  tbody.append(...rows.map((row) => line("td", row)));
  out.append(thead, tbody);
  return out;
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

// Follow a pointer from where it goes down until it is let go; `move` gets its place in pixels of the picture.
function drag(node, picture, move, begin = () => {}) {
  node.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const place = (e) => {
      const box = picture.getBoundingClientRect();
      const unit = (picture.viewBox.baseVal.width || box.width) / box.width;
      return [(e.clientX - box.left) * unit, (e.clientY - box.top) * unit];
    };
    begin();
    move(...place(event));
    const follow = (e) => move(...place(e));
    const release = () => { window.removeEventListener("pointermove", follow); };
    window.addEventListener("pointermove", follow);
    window.addEventListener("pointerup", release, { once: true });
    window.addEventListener("pointercancel", release, { once: true });
  });
}
