"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const charts = [...document.querySelectorAll(".chart")].map((box) => {
    const figure = JSON.parse(document.getElementById("f" + box.id.slice(1)).textContent);
    return { box, figure };
  });
  const layoutOf = (figure) => {
    const ink = dark.matches ? "#ececec" : "#1b1b1b", grid = dark.matches ? "#3a3e46" : "#dddddd";
    const axis = (given) => ({ automargin: true, gridcolor: grid, zerolinecolor: grid, linecolor: ink,
      exponentformat: "power", ...given });
    return { ...figure.layout, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: narrow.matches ? 11 : 13 }, margin: { l: 55, r: 15, t: 15, b: 50 },
      showlegend: figure.data.length > 1, hovermode: "closest", hoverlabel: { namelength: -1 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      xaxis: axis(figure.layout.xaxis), yaxis: axis(figure.layout.yaxis) };
  };
  const draw = () => charts.forEach(({ box, figure }) => Plotly.react(box, figure.data, layoutOf(figure),
    { responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover" }));
  draw();
  dark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  // arrow keys go through the points of a chart as the pointer does
  charts.forEach(({ box, figure }) => {
    const points = figure.data.flatMap((trace, curveNumber) =>
      trace.type === "heatmap" ? [] : (trace.x || trace.y || []).map((_, pointNumber) => ({ curveNumber, pointNumber })));
    let place = -1;
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !points.length) { return; }
      event.preventDefault();
      place = (place + step + points.length) % points.length;
      Plotly.Fx.hover(box, [points[place]]);
    });
    box.addEventListener("blur", () => Plotly.Fx.unhover(box));
  });
})();
