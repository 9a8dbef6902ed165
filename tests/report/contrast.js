// WCAG 2.x contrast of badge letters and small text against what is painted behind them; returns what is below 4.5:1.
() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] / 255 + under[i] * (1 - top[3] / 255)).concat(255);
  const behind = (element) => {
    const layers = [];
    for (let node = element; node; node = node.parentElement) {
      if (node.classList.contains('badge')) layers.push(rgba(getComputedStyle(node, '::before').backgroundColor));
      layers.push(rgba(getComputedStyle(node).backgroundColor));
    }
    return layers.reverse().reduce((under, top) => over(top, under), rgba(getComputedStyle(document.documentElement).backgroundColor || 'white'));
  };
  for (const badge of [...document.querySelectorAll('.legend .badge')]) {
    const claimed = badge.cloneNode(true);
    claimed.classList.add('b-documented');
    document.querySelector('#grid td').append(claimed);
  }
  for (const role of ['r-workaround', 'r-negative_control']) {
    const tag = Object.assign(document.createElement('span'), { className: `role ${role}`, textContent: role });
    document.querySelector('#grid tr.variant th').append(tag);
  }
  const low = [];
  for (const element of document.querySelectorAll('.badge, #grid i, #grid small, .role, .span, .claim, .meta, .tally .l, .what')) {
    if (!element.textContent.trim() || !element.checkVisibility()) continue;
    const [a, b] = [luminance(rgba(getComputedStyle(element).color)), luminance(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${element.className} ${element.textContent}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(low)];
}
