function fill (text, values) {
  return text.replace(/\{\{(.*?)\}\}/g, (place, name) => {
    const found = name.trim().split('.').reduce((value, key) => value?.[key], values)
    return found === undefined || found === null ? place : String(found)
  })
}
