function tally (items, key) {
  const counts = {}
  for (const item of items) {
    if (item[key] !== undefined && item[key] !== null) {
      counts[item[key]] = (counts[item[key]] || 0) + 1
    }
  }
  return counts
}
