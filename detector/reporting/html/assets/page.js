"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const figure = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : String(+value.toPrecision(3));
  };

  // definitions on hover and on focus
  const tip = $("tip");
  const showTip = (parts, x, y) => {
    tip.replaceChildren();
    parts.forEach(([tag, text]) => text && tip.append(make(tag, "", text)));
    const width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - width - 8)) + "px";
    tip.style.top = (y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18) + "px";
    tip.classList.add("on");
  };
  const hideTip = () => tip.classList.remove("on");
  const define = (node, x, y) => {
    const metric = data.metrics[node.dataset.m];
    if (metric) showTip([["b", metric.title], ["div", metric.definition], ["span", "Read: " + metric.source], ["span", metric.healthy && "Healthy: " + metric.healthy]], x, y);
  };
  all("[data-m]").forEach((node) => {
    node.addEventListener("mousemove", (event) => define(node, event.clientX, event.clientY));
    node.addEventListener("mouseleave", hideTip);
    node.addEventListener("focus", () => { const box = node.getBoundingClientRect(); define(node, box.left, box.bottom - 10); });
    node.addEventListener("blur", hideTip);
  });

  // filter
  const chosen = { verdict: "", words: "" };
  const filter = () => {
    all("details.f, tr.more").forEach((row) => {
      const fits = (!chosen.verdict || row.dataset.v === chosen.verdict) && (!chosen.words || row.textContent.toLowerCase().includes(chosen.words));
      row.classList.toggle("hide", !fits);
    });
  };
  all(".filter button").forEach((button) => button.addEventListener("click", () => {
    chosen.verdict = button.dataset.v;
    all(".filter button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    filter();
  }));
  all(".filter input").forEach((input) => input.addEventListener("input", () => { chosen.words = input.value.trim().toLowerCase(); filter(); }));
  all("button.copy").forEach((button) => button.addEventListener("click", async () => {
    const text = button.closest(".body").querySelector("template.raw").content.textContent;
    try { await navigator.clipboard.writeText(text); button.textContent = "copied"; } catch { button.textContent = "not allowed here"; }
  }));
  const openFinding = (id) => {
    const card = $("f-" + id);
    if (!card) return;
    card.open = true;
    card.scrollIntoView({ behavior: "smooth", block: "center" });
  };

  // tables
  all("table.sortable th.sort").forEach((head) => head.addEventListener("click", () => {
    const table = head.closest("table"), body = table.tBodies[0], place = head.cellIndex, numeric = "n" in head.dataset;
    const down = head.dataset.order !== "down";
    all("th", table).forEach((other) => delete other.dataset.order);
    head.dataset.order = down ? "down" : "up";
    const value = (row) => {
      const cell = row.cells[place], text = cell.dataset.s ?? cell.textContent.trim();
      return numeric ? parseFloat(text.replace(/\u202f/g, "")) || 0 : text.toLowerCase();
    };
    const sign = down === numeric ? -1 : 1;
    body.append(...[...body.rows].sort((a, b) => { const x = value(a), y = value(b); return sign * (x < y ? -1 : x > y ? 1 : 0); }));
    table.dispatchEvent(new Event("sorted"));
  }));

  const SHOWN = 14;
  all("table.long").forEach((table) => {
    const rest = () => [...table.tBodies[0].rows].slice(SHOWN);
    if (rest().length < 4) return;
    const button = make("button", "rest", `all ${table.tBodies[0].rows.length} rows`);
    button.type = "button";
    const fold = () => [...table.tBodies[0].rows].forEach((row, i) => row.classList.toggle("hide", i >= SHOWN && !button.hidden));
    button.addEventListener("click", () => { button.hidden = true; fold(); });
    table.addEventListener("sorted", fold);
    table.after(button);
    fold();
  });

  // charts: drawn again when the window or the colours change
  const charts = [];
  const chart = (id, draw) => { const node = typeof id === "string" ? $(id) : id; if (node && typeof uPlot !== "undefined") charts.push({ node, draw, plot: null }); };
  const drawAll = () => charts.forEach((one) => {
    if (one.plot) one.plot.destroy();
    one.node.replaceChildren();
    one.plot = one.draw(one.node, Math.max(280, one.node.clientWidth));
  });
  const font = (size) => `${size}px system-ui, sans-serif`;
  const axis = (more) => ({ stroke: colour("--muted"), font: font(11), labelFont: font(11), labelSize: 18, grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1, size: 4 }, ...more });
  const faded = (text, alpha) => `color-mix(in srgb, ${text} ${100 * alpha}%, transparent)`;

  const KINDS = { op: "--t-op", call: "--t-call", launch: "--c-launch", wait: "--c-sync", kernel: "--t-kernel", copy: "--c-copy" };
  const CAUSES = { launch: "--c-launch", sync: "--c-sync", host: "--c-host", copy: "--c-copy", device: "--c-device", communication: "--c-communication" };
  const timeline = data.timeline;
  const view = { from: 0, to: timeline ? timeline.span_us / 1e3 : 1 };
  const laneColour = (lane, name) => lane.group === "marks" ? "--t-mark" : lane.group === "idle" ? CAUSES[name] || "--c-device" : KINDS[name] || "--t-call";
  const laneWords = (lane) => lane.group === "host" ? `${lane.label}: ${lane.row}` : lane.label;

  const drawTimeline = (node, width) => {
    const lanes = timeline.lanes, height = 26, whole = timeline.span_us / 1e3, ratio = devicePixelRatio || 1;
    const paint = (u) => {
      const { ctx } = u, left = u.bbox.left, right = left + u.bbox.width;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      ctx.strokeStyle = colour("--strong");
      ctx.lineWidth = ratio;
      timeline.ticks.forEach((tick) => {
        const x = Math.round(u.valToPos(tick / 1e3, "x", true)) + 0.5;
        ctx.beginPath(); ctx.moveTo(x, u.bbox.top); ctx.lineTo(x, u.bbox.top + u.bbox.height); ctx.stroke();
      });
      const scale = (u.bbox.width) / (u.scales.x.max - u.scales.x.min), zero = u.scales.x.min;
      lanes.forEach((lane, row) => {
        const pad = lane.group === "marks" || lane.group === "idle" ? 5 : 4;
        const top = u.bbox.top + (row * height + pad) * ratio, tall = (height - 2 * pad) * ratio;
        const fills = new Map();
        let drawn = -1;
        for (let i = 0; i < lane.start.length; i++) {
          const from = left + (lane.start[i] / 1e3 - zero) * scale, to = from + (lane.took[i] / 1e3) * scale;
          if (to < left || from > right) continue;
          if (to < drawn) continue; // less than a pixel, and that pixel is drawn
          const name = timeline.names[lane.kind[i]];
          if (!fills.has(name)) fills.set(name, colour(laneColour(lane, name)));
          ctx.fillStyle = fills.get(name);
          ctx.globalAlpha = lane.count && lane.count[i] > 1 ? 0.2 + 0.8 * lane.full[i] / 100 : 1;
          const wide = Math.max(to - from, ratio * 0.8);
          ctx.fillRect(from, top, wide > 3 * ratio ? wide - 0.5 * ratio : wide, tall);
          drawn = from + ratio * 0.7;
          ctx.globalAlpha = 1;
          if (wide > 46 * ratio && lane.group !== "idle") {
            ctx.save();
            ctx.beginPath(); ctx.rect(from, top, wide - 4 * ratio, tall); ctx.clip();
            ctx.fillStyle = colour(lane.group === "host" && (name === "op" || name === "call") ? "--fg" : "--card");
            ctx.font = font(10 * ratio);
            ctx.textAlign = "left";
            ctx.textBaseline = "middle";
            ctx.fillText(timeline.names[lane.name[i]], Math.max(from, left) + 4 * ratio, top + tall / 2);
            ctx.restore();
          }
        }
      });
      ctx.restore();
    };
    const at = (u, event) => {
      const box = u.over.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / height), lane = lanes[row];
      if (!lane) return null;
      const moment = u.posToVal(event.clientX - box.left, "x") * 1e3, slack = (u.scales.x.max - u.scales.x.min) * 1e3 / box.width * 2;
      let low = 0, high = lane.start.length;
      while (low < high) { const middle = (low + high) >> 1; if (lane.start[middle] <= moment + slack) low = middle + 1; else high = middle; }
      for (let i = low - 1; i >= Math.max(0, low - 40); i--) if (lane.start[i] + lane.took[i] >= moment - slack) return { lane, i };
      return null;
    };
    const hooks = {
      draw: [paint],
      setScale: [(u, key) => { if (key === "x") { view.from = u.scales.x.min; view.to = u.scales.x.max; } }],
      ready: [(u) => {
        u.over.addEventListener("mousemove", (event) => {
          const hit = at(u, event);
          if (!hit) return hideTip();
          const { lane, i } = hit, name = timeline.names[lane.name[i]], kind = timeline.names[lane.kind[i]], count = lane.count ? lane.count[i] : 1;
          const took = lane.took[i] >= 1000 ? figure(lane.took[i] / 1e3) + " ms" : figure(lane.took[i]) + " µs";
          const metric = data.metrics["idle_" + kind];
          const title = lane.group === "idle" ? (metric ? metric.title : name) : name;
          const text = (count > 1 ? `${count} events fill ${lane.full[i]} % of ` : "") + took + `, from ${figure(lane.start[i] / 1e3)} ms`;
          showTip([["b", title], ["div", text], ["span", lane.group === "idle" ? metric && metric.definition : lane.group === "marks" ? "click: the finding" : laneWords(lane) + (kind === "op" || kind === "kernel" ? "" : ", " + kind)]], event.clientX, event.clientY);
        });
        u.over.addEventListener("mouseleave", hideTip);
        u.over.addEventListener("click", (event) => { const hit = at(u, event); if (hit && hit.lane.group === "marks") openFinding(timeline.names[hit.lane.kind[hit.i]]); });
        u.over.addEventListener("wheel", (event) => {
          if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
          event.preventDefault();
          const middle = u.posToVal(event.clientX - u.over.getBoundingClientRect().left, "x");
          zoom(u, event.deltaY < 0 ? 0.8 : 1.25, middle);
        }, { passive: false });
      }],
    };
    const zoom = (u, factor, middle) => {
      const from = middle - (middle - u.scales.x.min) * factor, to = middle + (u.scales.x.max - middle) * factor;
      const least = whole / 1e5;
      if (to - from < least) return;
      u.setScale("x", { min: Math.max(0, from), max: Math.min(whole, to) });
    };
    const labels = Math.min(190, Math.max(96, width * 0.17));
    const u = new uPlot({
      width, height: lanes.length * height + 34, padding: [0, 8, 0, 0], legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: true, dist: 4 } },
      scales: { x: { time: false, range: (_, min, max) => [min, max] }, y: { range: [0, lanes.length] } },
      axes: [
        axis({ size: 30, values: (_, splits) => splits.map((value) => `${+value.toPrecision(6)}${value === splits[splits.length - 1] ? " ms" : ""}`) }),
        axis({ size: labels, gap: 6, splits: () => lanes.map((_, i) => lanes.length - i - 0.5), values: () => lanes.map(laneWords), grid: { show: false }, ticks: { show: false }, font: font(11.5) }),
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks,
    }, [[0, whole], [0, 0]], node);
    u.setScale("x", { min: view.from, max: view.to });
    const middle = () => (u.scales.x.min + u.scales.x.max) / 2;
    $("t-in").onclick = () => zoom(u, 0.5, middle());
    $("t-out").onclick = () => zoom(u, 2, middle());
    $("t-all").onclick = () => u.setScale("x", { min: 0, max: whole });
    $("t-one").onclick = () => { const [a, b] = timeline.ticks; u.setScale("x", { min: (a || 0) / 1e3, max: b === undefined ? whole : b / 1e3 }); };
    return u;
  };
  if (timeline) {
    const groups = new Set(timeline.lanes.map((lane) => lane.group));
    const key = [["--t-mark", "findings", "marks"], ["--t-op", "operators", "host"], ["--c-launch", "launches", "device"], ["--c-sync", "waits", "device"], ["--t-kernel", "kernels", "device"], ["--c-copy", "copies", "device"]];
    key.filter(([, , group]) => groups.has(group)).forEach(([name, words]) => {
      const item = make("span"), box = make("i", "sw");
      box.style.background = `var(${name})`;
      box.style.marginRight = ".3rem";
      item.append(box, words);
      $("t-key").append(item);
    });
    chart("timeline", drawTimeline);
    chart("strip", (node, width) => {
      const { busy, ms, from, to } = timeline.strip, x = busy.map((_, i) => (i + 0.5) / busy.length * ms);
      return new uPlot({
        width, height: 96, legend: { show: false }, cursor: { show: false },
        scales: { x: { time: false, range: [0, ms] }, y: { range: [0, 100] } },
        axes: [axis({ size: 28, values: (_, s) => s.map((v) => `${+v.toPrecision(6)}`) }), axis({ size: 44, splits: () => [0, 50, 100], values: (_, s) => s.map((v) => v + " %") })],
        series: [{}, { stroke: colour("--t-kernel"), fill: faded(colour("--t-kernel"), 0.3), width: 1, points: { show: false } }],
        hooks: { drawClear: [(u) => {
          const a = u.valToPos(from * ms, "x", true), b = u.valToPos(to * ms, "x", true);
          u.ctx.fillStyle = faded(colour("--accent"), 0.14);
          u.ctx.fillRect(a, u.bbox.top, Math.max(b - a, 2), u.bbox.height);
        }] },
      }, [x, busy], node);
    });
  }

  const roofline = data.roofline;
  if (roofline) chart("roofline", (node, width) => {
    const low = 0.1, high = 10000, steps = 200, x = [...Array(steps + 1).keys()].map((i) => low * (high / low) ** (i / steps));
    const names = Object.keys(roofline.tflops), series = [{}], values = [x], shades = ["--accent", "--c-host", "--c-copy", "--c-communication"];
    names.forEach((name, i) => {
      series.push({ label: name, stroke: colour(shades[i % shades.length]), width: name === roofline.dtype ? 2 : 1, dash: name === roofline.dtype ? [] : [4, 4], points: { show: false } });
      values.push(x.map((v) => Math.min(v * roofline.tb_per_s, roofline.tflops[name])));
    });
    const least = Math.min(0.1, ...roofline.points.map((p) => p.tflops / 3)), top = Math.max(...Object.values(roofline.tflops)) * 2;
    const decades = (u, i, from, to) => [...Array(12).keys()].map((e) => 10 ** (e - 5)).filter((v) => v >= from * 0.999 && v <= to * 1.001);
    const power = (v) => { const e = Math.round(Math.log10(v)); return Math.abs(Math.log10(v) - e) < 1e-6 ? (e >= -2 && e <= 4 ? String(+(10 ** e).toPrecision(1)) : `1e${e}`) : ""; };
    return new uPlot({
      width, height: 340, legend: { show: false }, cursor: { points: { show: false }, drag: { x: false, y: false } }, padding: [12, 60, 0, 0],
      scales: { x: { time: false, distr: 3, range: [low, high] }, y: { distr: 3, range: [least, top] } },
      axes: [axis({ label: "FLOP per byte of device memory", size: 34, splits: decades, values: (_, s) => s.map(power) }), axis({ label: "TFLOP/s", size: 50, splits: decades, values: (_, s) => s.map(power) })],
      series,
      hooks: {
        draw: [(u) => {
          const { ctx } = u, ratio = devicePixelRatio || 1;
          ctx.save();
          ctx.font = font(11 * ratio);
          ctx.textBaseline = "middle";
          names.forEach((name, i) => { ctx.fillStyle = colour(shades[i % shades.length]); ctx.textAlign = "left"; ctx.fillText(`${name} ${roofline.tflops[name]}`, u.bbox.left + u.bbox.width + 6 * ratio, u.valToPos(roofline.tflops[name], "y", true)); });
          roofline.points.forEach((point, i) => {
            const px = u.valToPos(Math.min(Math.max(point.intensity, low), high), "x", true), py = u.valToPos(point.tflops, "y", true), kernel = point.kind === "kernel";
            ctx.beginPath();
            ctx.arc(px, py, (kernel ? 4 : 5.5) * ratio, 0, 7);
            ctx.fillStyle = colour(kernel ? "--t-kernel" : point.kind === "busy" ? "--t-mark" : "--bad");
            ctx.fill();
            if (!kernel || i < 6) { ctx.fillStyle = colour("--fg"); ctx.textAlign = "left"; ctx.fillText(point.name.slice(0, 48), px + 9 * ratio, py); }
          });
          ctx.restore();
        }],
        ready: [(u) => {
          u.over.addEventListener("mousemove", (event) => {
            const box = u.over.getBoundingClientRect(), x0 = event.clientX - box.left, y0 = event.clientY - box.top;
            const near = roofline.points.find((p) => Math.hypot(u.valToPos(Math.min(Math.max(p.intensity, low), high), "x") - x0, u.valToPos(p.tflops, "y") - y0) < 10);
            if (near) showTip([["b", near.name], ["div", `${figure(near.tflops)} TFLOP/s at ${figure(near.intensity)} FLOP/byte`]], event.clientX, event.clientY); else hideTip();
          });
          u.over.addEventListener("mouseleave", hideTip);
        }],
      },
    }, values, node);
  });

  const times = data.unit_times;
  if (times) chart("unit-times", (node, width) => {
    const edges = times.histogram.edges_ms, middles = times.histogram.units.map((_, i) => (edges[i] + edges[i + 1]) / 2);
    return new uPlot({
      width, height: 190, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: [edges[0], edges[edges.length - 1]] }, y: { range: (_, low, high) => [0, high * 1.08] } },
      axes: [axis({ label: "ms", size: 30, values: (_, s) => s.map((v) => `${+v.toPrecision(6)}`) }), axis({ size: 44 })],
      series: [{}, { fill: faded(colour("--accent"), 0.55), stroke: colour("--accent"), width: 0, paths: uPlot.paths.bars({ size: [0.92, 100], gap: 1 }), points: { show: false } }],
    }, [middles, times.histogram.units], node);
  });

  const memory = data.memory_curve;
  if (memory) chart("memory-curve", (node, width) => {
    const gib = (values) => values.map((value) => value / 2 ** 30);
    return new uPlot({
      width, height: 190, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, high * 1.08] } },
      axes: [axis({ size: 26, values: (_, s) => s.map((v) => `${v} s`) }), axis({ size: 52, values: (_, s) => s.map(figure) })],
      series: [{}, { stroke: colour("--c-busy"), fill: faded(colour("--c-busy"), 0.35), width: 1.2, points: { show: false } }, { stroke: colour("--c-copy"), width: 1.4, points: { show: false } }],
      hooks: {
        setCursor: [(u) => {
          const i = u.cursor.idx;
          if (i === null || i === undefined || !u.over.matches(":hover")) return;
          const box = u.over.getBoundingClientRect();
          showTip([["b", `${figure(u.data[0][i])} s`], ["div", `in tensors ${figure(u.data[1][i])} GiB`], ["div", `reserved ${figure(u.data[2][i])} GiB`]], box.left + u.cursor.left, box.top + u.cursor.top);
        }],
        ready: [(u) => u.over.addEventListener("mouseleave", hideTip)],
      },
    }, [memory.t_s, gib(memory.used), gib(memory.reserved)], node);
  });

  const curves = data.curves;
  if (curves && $("curves")) curves.charts.forEach((one) => {
    const box = make("div", "chart"), head = make("h4"), place = make("div");
    one.series.forEach((series, i) => {
      const item = make("b", "", series.title);
      item.style.color = one.series.length > 1 ? `var(${series.shade})` : "";
      head.append(item, i < one.series.length - 1 ? " · " : ` ${one.unit}`);
    });
    box.append(head, place);
    $("curves").append(box);
    chart(place, (node, width) => new uPlot({
      width, height: 150, legend: { show: false }, cursor: { y: false, sync: { key: "device" }, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => one.top ? [0, one.top] : [Math.min(0, low), high === low ? high + 1 : high * 1.08] } },
      axes: [axis({ size: 26, values: (_, s) => s.map((v) => `${v} s`) }), axis({ size: 52, values: (_, s) => s.map((v) => figure(v)) })],
      series: [{}, ...one.series.map((series) => ({ stroke: colour(series.shade), width: 1.4, points: { show: false }, spanGaps: true }))],
      hooks: {
        drawClear: [(u) => {
          u.ctx.save();
          curves.windows.forEach(([from, to, kind]) => {
            const a = Math.max(u.valToPos(from, "x", true), u.bbox.left), b = Math.min(u.valToPos(to, "x", true), u.bbox.left + u.bbox.width);
            if (b <= a) return;
            u.ctx.fillStyle = faded(colour(kind === "baseline" ? "--t-kernel" : kind === "marks" ? "--t-mark" : "--c-launch"), 0.13);
            u.ctx.fillRect(a, u.bbox.top, b - a, u.bbox.height);
          });
          u.ctx.restore();
        }],
        setCursor: [(u) => {
          const i = u.cursor.idx;
          if (i === null || i === undefined || !u.over.matches(":hover")) return;
          const box = u.over.getBoundingClientRect();
          showTip([["b", `${figure(u.data[0][i])} s`], ...one.series.map((series, n) => ["div", `${series.title}: ${figure(u.data[n + 1][i])} ${one.unit}`])], box.left + u.cursor.left, box.top + u.cursor.top);
        }],
        ready: [(u) => u.over.addEventListener("mouseleave", hideTip)],
      },
    }, [curves.t_s, ...one.series.map((series) => series.values)], node));
  });

  // from a finding to its first execution in the timeline
  const executions = new Map();
  if (timeline) timeline.lanes.filter((lane) => lane.group === "marks").forEach((lane) => lane.start.forEach((start, i) => {
    const id = timeline.names[lane.kind[i]];
    if (!executions.has(id)) executions.set(id, { start, took: lane.took[i] });
  }));
  executions.forEach(({ start, took }, id) => {
    const card = $("f-" + id), place = card && card.querySelector(".figs");
    if (!place) return;
    const button = make("button", "link", "show in the timeline");
    button.type = "button";
    button.addEventListener("click", () => {
      const drawn = charts.find((one) => one.node.id === "timeline").plot, room = Math.max(took, 20);
      drawn.setScale("x", { min: Math.max(0, (start - room) / 1e3), max: Math.min(timeline.span_us, start + took + room) / 1e3 });
      $("timeline-section").scrollIntoView({ behavior: "smooth" });
    });
    place.append(button);
  });

  drawAll();
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details.f[data-v=confirmed]:not([open])").slice(0, 8);
    opened.forEach((card) => { card.open = true; });
    document.documentElement.classList.add("printing");
    drawAll();
  });
  addEventListener("afterprint", () => {
    opened.forEach((card) => { card.open = false; });
    document.documentElement.classList.remove("printing");
    drawAll();
  });
  if (location.hash.startsWith("#f-")) openFinding(location.hash.slice(3));
  document.documentElement.dataset.ready = String(Math.round(performance.now())); // ms since the page was asked for
})();
