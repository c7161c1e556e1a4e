function sheet (cells) {
  const valueOf = (name, seen) => {
    if (seen.includes(name)) return '#CYCLE'
    const cell = Object.hasOwn(cells, name) ? cells[name] : 0
    if (typeof cell !== 'string') return cell
    const values = cell.slice(1).split('+').map(part => valueOf(part, [...seen, name]))
    return values.includes('#CYCLE') ? '#CYCLE' : values.reduce((a, b) => a + b)
  }
  return Object.fromEntries(Object.keys(cells).map(name => [name, valueOf(name, [])]))
}
