const firings = (times, wait) =>
  times.filter((time, i) => i === times.length - 1 || times[i + 1] - time > wait).map(time => time + wait)
