function beyond (more, fewer) {
  const left = [...fewer]
  return more.filter(item => {
    const at = left.indexOf(item)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
const differences = (before, after) => ({ added: beyond(after, before), removed: beyond(before, after) })
