function parseQuery (text) {
  const found = {}
  for (const [name, value] of new URLSearchParams(text)) {
    if (!Object.hasOwn(found, name)) found[name] = value
    else found[name] = [].concat(found[name], value)
  }
  return found
}
