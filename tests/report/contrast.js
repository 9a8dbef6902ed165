// WCAG 2.x contrast of all text that is shown against what is painted behind it, hatching included; `simulate` is a
// matrix on linear RGB (a colour vision deficiency) or null. Returns what is below 4.5:1, and how many were looked at.
(simulate) => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
      known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => {
    const plain = colour.slice(0, 3).map(linear);
    const seen = simulate ? simulate.map((row) => Math.min(1, Math.max(0, row.reduce((sum, k, i) => sum + k * plain[i], 0)))) : plain;
    return 0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2];
  };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] / 255 + under[i] * (1 - top[3] / 255)).concat(255);
  const shape = (svg) => svg.closest('g.node')?.querySelector('.body');
  // Each layer is what may be painted there: a plain colour, or that and the lines of a hatching.
  const behind = (element) => {
    const layers = [];
    for (let node = element; node; node = node.parentElement) {
      const style = getComputedStyle(node);
      if (node.classList.contains('badge')) layers.push([rgba(getComputedStyle(node, '::before').backgroundColor)]);
      if (node.tagName === 'text' && shape(node)) layers.push([rgba(getComputedStyle(shape(node)).fill)]);
      if (style.backgroundImage.includes('repeating')) layers.push([[0, 0, 0, 0], rgba(style.backgroundImage.match(/rgb\([^)]*\) \d/)[0].slice(0, -2))]);
      layers.push([rgba(style.backgroundColor)]);
    }
    const page = rgba(getComputedStyle(document.body).backgroundColor);
    return layers.reverse().reduce((grounds, tops) => grounds.flatMap((ground) => tops.map((top) => over(top, ground))), [page]);
  };
  const low = [];
  let looked = 0;
  const texts = [...document.querySelectorAll('body *')].filter((element) => !['SCRIPT', 'STYLE', 'OPTION', 'OPTGROUP'].includes(element.tagName)
    && [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
  for (const element of texts) {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest('.vh, :disabled')) continue;
    const style = getComputedStyle(element);
    const ink = rgba(element.namespaceURI.endsWith('svg') ? style.fill : style.color);
    for (const ground of behind(element)) {
      const [a, b] = [luminance(over(ink, ground)), luminance(ground)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      looked += 1;
      if (ratio < 4.5) low.push(`${element.tagName} ${element.getAttribute('class')} in ${element.parentElement.className} ${element.textContent.slice(0, 20)}: ${ratio.toFixed(2)}`);
    }
  }
  return { low: [...new Set(low)], looked };
}
