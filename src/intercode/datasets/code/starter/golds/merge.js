const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)

function merge (a, b) {
  const found = { ...a }
  for (const [key, value] of Object.entries(b)) {
    if (value === null) delete found[key]
    else if (Array.isArray(value) && Array.isArray(found[key])) found[key] = [...found[key], ...value]
    else if (isObject(value) && isObject(found[key])) found[key] = merge(found[key], value)
    else found[key] = value
  }
  return found
}
