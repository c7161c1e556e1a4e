function wrap (text, width) {
  const lines = []
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.length - 1
    if (last >= 0 && lines[last].length + 1 + word.length <= width) lines[last] += ' ' + word
    else for (let at = 0; at < word.length; at += width) lines.push(word.slice(at, at + width))
  }
  return lines
}
