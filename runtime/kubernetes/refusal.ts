/** Who refused a write that the caller may make and that is sound: read off the API server's message. Pure. */
import type { Refusal } from '../store/store-error.ts'

const MAX_WORDS = 300

/** The API server's sentences, by whom they are about. What a call to a webhook met is left out: it changes from call to call. */
const SENTENCES: readonly (readonly [pattern: RegExp, by: (name: string) => string])[] = [
  [/failed calling webhook "([^"]+)"/, name => `failed calling webhook "${name}"`],
  [/admission webhook "([^"]+)" denied the request(?:: ([^]*))?/, name => `denied by webhook "${name}"`],
  [/ValidatingAdmissionPolicy '([^']+)'.*? denied request: ([^]*)/, name => `denied by policy "${name}"`],
  [/exceeded quota: ([^,]+), ([^]*)/, name => `over quota "${name}"`],
  [/failed quota: ([^:]+): ([^]*)/, name => `denied by quota "${name}"`],
]

/** Of our own rights, and of a namespace that is being deleted: neither is anybody's judgement of what was written. */
const NO_REFUSAL = /is forbidden: user "|because it is being terminated|attempting to grant RBAC permissions/i

/** undefined: the answer says something else. */
export const refusalIn = (code: number, message: string): Refusal | undefined => {
  if (NO_REFUSAL.test(message)) return undefined
  for (const [pattern, by] of SENTENCES) {
    const [found, name = '', words = ''] = pattern.exec(message) ?? []
    if (found !== undefined) return refusal(by(name), words)
  }
  const [, words] = code === 403 ? (/ is forbidden: ([^]*)/.exec(message) ?? []) : []
  return words === undefined ? undefined : refusal('denied by admission', words)
}

const refusal = (by: string, words: string): Refusal => ({
  by,
  ...(words === '' ? {} : { words: words.slice(0, MAX_WORDS) }),
})
