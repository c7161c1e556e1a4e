function compareVersions (a, b) {
  const [x, y] = [a, b].map(text => {
    const at = text.indexOf('-')
    const numbers = (at < 0 ? text : text.slice(0, at)).split('.').map(Number)
    return { numbers, pieces: at < 0 ? null : text.slice(at + 1).split('.') }
  })
  for (let i = 0; i < 3; i++) {
    if (x.numbers[i] !== y.numbers[i]) return Math.sign(x.numbers[i] - y.numbers[i])
  }
  if (!x.pieces || !y.pieces) return (x.pieces ? 0 : 1) - (y.pieces ? 0 : 1)
  for (let i = 0; i < Math.min(x.pieces.length, y.pieces.length); i++) {
    const [p, q] = [x.pieces[i], y.pieces[i]]
    const [m, n] = [p, q].map(piece => /^\d+$/.test(piece))
    if (m && n && Number(p) !== Number(q)) return Math.sign(Number(p) - Number(q))
    if (m !== n) return m ? -1 : 1
    if (!m && p !== q) return p > q ? 1 : -1
  }
  return Math.sign(x.pieces.length - y.pieces.length)
}
