const MAX_SHOWN = 60

/** Line ends, other control characters, and those that turn the direction of what follows. */
const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu
/** What mail programs make a link of, whoever wrote it. */
const LINKS = /:\/\/|www\.|\b[a-z0-9-]+\.[a-z]{2,}\b|@/iu

/**
 * A name that somebody chose, in a letter of ours to somebody else: short, on one line, and never a link, or everybody could
 * have us send their own. Where it cannot be shown, `otherwise` is.
 */
export const foreignName = (name: string, otherwise: string): string => {
  const shown = name.replaceAll(CONTROL, ' ').trim().slice(0, MAX_SHOWN).toWellFormed()
  return shown === '' || LINKS.test(shown) ? otherwise : shown
}
