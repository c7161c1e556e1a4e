async function inOrder (delays) {
  return delays.map((delay, i) => [delay, i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(pair => pair[1])
}
