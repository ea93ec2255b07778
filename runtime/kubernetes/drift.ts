/**
 * Whether an object is as it was applied. Pure. Everything that was applied must be there as it was; what others, or the
 * server's defaults, put beside it is theirs. Lists are compared item by item, labels and annotations by their own keys.
 */

export const hasDrifted = (applied: unknown, live: unknown): boolean => {
  // The server leaves out what is empty.
  if (live === undefined && isEmpty(applied)) return false
  if (Array.isArray(applied))
    return (
      !Array.isArray(live) ||
      applied.length !== live.length ||
      applied.some((item, index) => hasDrifted(item, (live as readonly unknown[])[index]))
    )
  if (typeof applied === 'object' && applied !== null)
    return (
      typeof live !== 'object' ||
      live === null ||
      Object.entries(applied).some(([name, value]) => hasDrifted(value, (live as Record<string, unknown>)[name]))
    )
  return applied !== live && !sameQuantity(applied, live)
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0

const QUANTITY = /^(\d+(?:\.\d+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/
const FACTORS: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  Ki: 2 ** 10,
  M: 1e6,
  Mi: 2 ** 20,
  G: 1e9,
  Gi: 2 ** 30,
  T: 1e12,
  Ti: 2 ** 40,
}

/** What a quantity is; NaN where it is none. */
export const quantity = (text: unknown): number => {
  const match = QUANTITY.exec(typeof text === 'string' ? text : '')
  return match === null ? Number.NaN : Number(match[1]) * (match[2] === undefined ? 1 : (FACTORS[match[2]] ?? 1))
}

/** The server writes quantities its own way: 1073741824 and 1Gi are the same. */
const sameQuantity = (applied: unknown, live: unknown): boolean => quantity(applied) === quantity(live)
