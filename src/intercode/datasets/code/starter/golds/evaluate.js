function evaluate (text) {
  const tokens = text.match(/\d+(\.\d+)?|\S/g) || []
  const sum = () => {
    let value = product()
    while (tokens[0] === '+' || tokens[0] === '-') value += tokens.shift() === '+' ? product() : -product()
    return value
  }
  const product = () => {
    let value = single()
    while (tokens[0] === '*' || tokens[0] === '/') {
      if (tokens.shift() === '*') value *= single()
      else value /= single()
    }
    return value
  }
  const single = () => {
    const token = tokens.shift()
    if (token === '-') return -single()
    if (token === '(') {
      const value = sum()
      return tokens.shift() === ')' ? value : NaN
    }
    return /^\d/.test(token || '') ? Number(token) : NaN
  }
  const value = sum()
  return tokens.length || !Number.isFinite(value) ? null : value
}
