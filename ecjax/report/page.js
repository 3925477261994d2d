"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const charts = [...document.querySelectorAll(".chart")].map((box) => {
    const figure = JSON.parse(document.getElementById("f" + box.id.slice(1)).textContent);
    const height = figure.layout.height;
    delete figure.layout.height;  // the box has it, and grows by the legend on a narrow screen
    const legend = figure.data.length > 1 ? 17 * figure.data.length : 0;
    const resize = () => { box.style.height = height || legend
      ? `calc(${height ? height + "px" : narrow.matches ? "20rem" : "26rem"} + ${narrow.matches ? legend : 0}px)` : ""; };
    resize();
    narrow.addEventListener("change", resize);
    return { box, figure };
  });
  // few powers of ten: 1, 2 and 5 of each, in plain numbers; else only the powers
  const ticks = (figure, name) => {
    if ((figure.layout[name] || {}).type !== "log") { return {}; }
    const values = figure.data.flatMap((trace) => trace[name[0]] || []).filter((value) => value > 0);
    const span = Math.log10(values.reduce((a, b) => Math.max(a, b), 0) / values.reduce((a, b) => Math.min(a, b), Infinity));
    return span < 3 ? { dtick: "D2", tickformat: "~g", minorloglabels: "complete" } : { minorloglabels: "none" };
  };
  let printing = false;
  const layoutOf = (figure) => {
    const night = dark.matches && !printing;
    const ink = night ? "#ececec" : "#1b1b1b", grid = night ? "#3a3e46" : "#dddddd";
    const axis = (given) => ({ automargin: true, gridcolor: grid, zerolinecolor: grid, linecolor: ink,
      exponentformat: "power", nticks: narrow.matches && given.type !== "category" ? 6 : 0,
      ...given, title: { ...given.title, standoff: 10 } });
    return { ...figure.layout, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: narrow.matches ? 11 : 13 }, margin: { l: 55, r: 15, t: 15, b: 50 },
      showlegend: figure.data.length > 1, hovermode: "closest", hoverlabel: { namelength: -1 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      xaxis: axis({ ...ticks(figure, "xaxis"), ...figure.layout.xaxis }),
      yaxis: axis({ ...ticks(figure, "yaxis"), ...figure.layout.yaxis }) };
  };
  const draw = () => charts.forEach(({ box, figure }) => Plotly.react(box, figure.data, layoutOf(figure),
    // buttons by name: among Plotly's own is one that sends a chart to a server
    { responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] }));
  draw();
  dark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  // paper is white, whatever the screen is
  window.addEventListener("beforeprint", () => { printing = true; draw(); });
  window.addEventListener("afterprint", () => { printing = false; draw(); });
  // arrow keys go through the points of a chart as the pointer does
  const pointsOf = (trace, curveNumber) => trace.type === "heatmap"
    ? trace.z.flatMap((row, yval) => row.map((value, xval) => ({ xval, yval, value })))
      .filter((point) => point.value !== null)
    : (trace.x || []).map((_, pointNumber) => ({ curveNumber, pointNumber }))
      .filter(({ pointNumber }) => trace.x[pointNumber] !== null && trace.y[pointNumber] !== null);
  charts.forEach(({ box, figure }) => {
    const points = figure.data.flatMap(pointsOf);
    let place = -1;
    box.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: points.length - 1 }[event.key];
      if (to === undefined || !points.length) { return; }
      event.preventDefault();
      place = (to + points.length) % points.length;
      const point = points[place];
      Plotly.Fx.hover(box, "xval" in point ? { xval: point.xval, yval: point.yval } : [point], "xy");
    });
    box.addEventListener("blur", () => Plotly.Fx.unhover(box));
  });
})();
