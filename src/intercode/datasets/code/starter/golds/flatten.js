function flatten (value, above = '') {
  const found = {}
  for (const [key, item] of Object.entries(value)) {
    const nested = item !== null && typeof item === 'object' && !Array.isArray(item)
    if (nested && Object.keys(item).length) Object.assign(found, flatten(item, `${above}${key}.`))
    else found[above + key] = item
  }
  return found
}
