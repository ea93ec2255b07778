/**
 * Finds secrets wherever they leaked to: in texts and in values of any shape, as they are or in the forms that programs bring them
 * into. It looks deeper than `util.inspect` prints: into fields that are not enumerable, too.
 */

/** Shorter ones occur by chance. */
const SHORTEST = 8
const DEEPEST = 12

/** What is the same in base64 wherever the secret begins and whatever stands around it. */
const base64Cores = (secret: string): readonly string[] =>
  [0, 1, 2].map(shift => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)])
    const text = bytes.toString('base64').replace(/=+$/, '')
    // The first characters hold bits of what stands before, the last one of what stands behind.
    return text.slice(shift === 0 ? 0 : shift + 1, bytes.length % 3 === 0 ? undefined : -1)
  })

const percentDecoded = (text: string): string =>
  text.replaceAll(/(?:%[0-9a-f]{2})+/gi, run => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
const unescaped = (text: string): string =>
  text
    .replaceAll(/\\u([0-9a-f]{4})/gi, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(/\\(["\\/])/g, '$1')
/** Without what stands between the parts of something that was split: over items of a list, lines, headers. */
const joined = (text: string): string => text.replaceAll(/[\s"',;[\]{}\\]+/g, '')

/** Every string in a value, whatever holds it: errors and their causes, maps, bytes. */
const textsIn = (value: unknown, depth = 0, seen = new Set<object>()): readonly string[] => {
  if (typeof value === 'string') return [value]
  if (value instanceof URL) return [value.href]
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return []
  if (depth > DEEPEST || seen.has(value)) return []
  seen.add(value)
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    return [bytes.toString('latin1'), bytes.toString('utf8')]
  }
  const inside = (each: unknown): readonly string[] => textsIn(each, depth + 1, seen)
  if (Array.isArray(value)) return value.flatMap(inside)
  if (value instanceof Map || value instanceof Set || value instanceof Headers) return [...value].flatMap(inside)
  return Reflect.ownKeys(value).flatMap(key => {
    const property = Object.getOwnPropertyDescriptor(value, key)
    return [String(key), ...(property !== undefined && 'value' in property ? inside(property.value) : [])]
  })
}

const HASH_BITS = 20
/** The upper bits of a product: of the lower ones, letters next to each other have few. */
const mixed = (code: number): number => Math.imul(code, 0x9e3779b1) >>> (32 - HASH_BITS)

/** Needles of a length at least `size`, by their first `size` characters. */
class Shelf {
  readonly size: number
  readonly #byHead = new Map<string, { readonly needle: string; readonly secret: string }[]>()
  /** Which hashes heads have, a bit each: most places of a text are left at one look, when there are tens of thousands too. */
  readonly #hashes = new Uint8Array(1 << (HASH_BITS - 3))

  constructor(size: number) {
    this.size = size
  }

  /** Of the first, the fourth and the last three characters: beginnings of tokens are alike. */
  #hash(text: string, at: number): number {
    const last = at + this.size - 1
    const code = (text.charCodeAt(at) * 31 + text.charCodeAt(at + 3)) * 31 + text.charCodeAt(last - 2)
    return mixed((code * 31 + text.charCodeAt(last - 1)) * 31 + text.charCodeAt(last))
  }

  add(needle: string, secret: string): void {
    const head = needle.slice(0, this.size)
    const known = this.#byHead.get(head)
    if (known === undefined) this.#byHead.set(head, [{ needle, secret }])
    else known.push({ needle, secret })
    const hash = this.#hash(needle, 0)
    this.#hashes[hash >>> 3]! |= 1 << (hash & 7)
  }

  find(text: string, found: Set<string>): void {
    for (let at = 0; at + this.size <= text.length; at++) {
      const hash = this.#hash(text, at)
      if ((this.#hashes[hash >>> 3]! & (1 << (hash & 7))) !== 0)
        for (const { needle, secret } of this.#byHead.get(text.slice(at, at + this.size)) ?? [])
          if (text.startsWith(needle, at)) found.add(secret)
    }
  }
}

/** What is looked for: one pass over a text for the long and one for the short, however many there are. */
class Needles {
  readonly #long = new Shelf(2 * SHORTEST)
  readonly #short = new Shelf(SHORTEST)

  add(needle: string, secret: string): void {
    if (needle.length >= this.#long.size) this.#long.add(needle, secret)
    else if (needle.length >= SHORTEST) this.#short.add(needle, secret)
  }

  find(text: string, found: Set<string>): void {
    this.#long.find(text, found)
    this.#short.find(text, found)
  }
}

export class SecretDetector {
  readonly #secrets = new Set<string>()
  /** In lower case. */
  readonly #plain = new Needles()
  readonly #base64 = new Needles()

  /** Adds one to look for; one that is shorter than 8 characters is left out, since it occurs by chance. */
  add(secret: string): void {
    if (secret.length < SHORTEST || this.#secrets.has(secret)) return
    this.#secrets.add(secret)
    this.#plain.add(secret.toLowerCase(), secret)
    this.#plain.add(joined(secret.toLowerCase()), secret)
    this.#plain.add(Buffer.from(secret).toString('hex'), secret)
    for (const core of base64Cores(secret)) this.#base64.add(core, secret)
  }

  /** Those of the secrets that stand in a text or in any value, in any of their forms. */
  find(sink: unknown): readonly string[] {
    const whole = textsIn(sink).join('\n')
    const found = new Set<string>()
    const forms = [whole, percentDecoded(whole), unescaped(whole), joined(whole)].map(text => text.toLowerCase())
    for (const form of new Set(forms)) this.#plain.find(form, found)
    this.#base64.find(whole.replaceAll('-', '+').replaceAll('_', '/'), found)
    return [...found]
  }
}
