/** RFC 3339 with six digits, as Kubernetes' MicroTime wants it. @param micros since the epoch; by default now */
export const microTime = (micros: number = Date.now() * 1000): string => {
  const iso = new Date(Math.floor(micros / 1000)).toISOString()
  return `${iso.slice(0, -1)}${String(micros % 1000).padStart(3, '0')}Z`
}
