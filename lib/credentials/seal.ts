/**
 * Envelope encryption: `v1.<kid>.<wrapped key>.<iv>.<ciphertext>.<tag>`, parts in base64url. Each record has a key of its own,
 * wrapped by one derived from the master key, so that a new master key rewraps 32 bytes a record and decrypts nothing.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

/** Where a sealed value lives. It opens nowhere else: not in another row, column or table, nor in an older version's place. */
export interface SealPlace {
  readonly table: string
  readonly column: string
  readonly rowId: string
  readonly version: bigint
}

/** Master keys: 32 bytes or more each. `previous` ones only open. */
export interface MasterKeys {
  readonly current: Uint8Array
  readonly previous?: readonly Uint8Array[]
}

/** A sealed value that does not open: another master key, another place, or tampering. Never says what was inside. */
export class SealError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'SealError'
  }
}

export interface Sealer {
  /** Names the current key in every sealed value: 8 hex digits. */
  readonly kid: string
  seal(place: SealPlace, secret: string): string
  /** @throws SealError */
  open(place: SealPlace, sealed: string): string
  /** The same secret under the current master key, never decrypted on the way. @throws SealError */
  rewrap(place: SealPlace, sealed: string): string
}

const FORMAT = 'v1'
const KEY_BYTES = 32
const IV_BYTES = 12
/** Given to the cipher at every opening: without it Node accepts a tag cut to 4 bytes. */
const TAG_BYTES = 16

interface WrappingKey {
  readonly kid: string
  readonly key: Buffer
}

const wrappingKey = (master: Uint8Array): WrappingKey => {
  if (master.length < KEY_BYTES)
    throw new SealError(`Cannot use a master key of ${master.length} bytes: expected ${KEY_BYTES} or more`)
  const key = Buffer.from(hkdfSync('sha256', master, '', 'kek', KEY_BYTES))
  return { kid: createHash('sha256').update(key).digest('hex').slice(0, 8), key }
}

const encrypt = (key: Buffer, aad: Buffer, plain: Buffer): [iv: Buffer, ciphertext: Buffer, tag: Buffer] => {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(aad)
  return [iv, Buffer.concat([cipher.update(plain), cipher.final()]), cipher.getAuthTag()]
}

const decrypt = (key: Buffer, aad: Buffer, iv: Buffer, ciphertext: Buffer, tag: Buffer): Buffer => {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(aad)
    decipher.setAuthTag(tag)
    return Buffer.concat([decipher.update(ciphertext), decipher.final()])
  } catch (error) {
    throw new SealError('A sealed value does not open: it was changed, moved, or sealed with another key', error)
  }
}

/** JSON keeps the parts apart, whatever characters they hold. */
const aadOf = ({ table, column, rowId, version }: SealPlace): Buffer =>
  Buffer.from(JSON.stringify([FORMAT, table, column, rowId, String(version)]))

const text = (bytes: Buffer): string => bytes.toString('base64url')

/** Strict: Node's decoder skips what it does not know, so one value would have many spellings. */
const bytes = (part: string): Buffer => {
  const decoded = Buffer.from(part, 'base64url')
  if (text(decoded) !== part) throw new SealError('A sealed value is malformed')
  return decoded
}

interface Envelope {
  readonly kid: string
  readonly wrapped: Buffer
  readonly iv: Buffer
  readonly ciphertext: Buffer
  readonly tag: Buffer
}

const parse = (sealed: string): Envelope => {
  const [format, kid, ...parts] = sealed.split('.')
  const [wrapped, iv, ciphertext, tag] = parts.map(bytes)
  if (format !== FORMAT || kid === undefined || parts.length !== 4 || !wrapped || !iv || !ciphertext || !tag)
    throw new SealError('A sealed value is malformed')
  return { kid, wrapped, iv, ciphertext, tag }
}

const render = ({ kid, wrapped, iv, ciphertext, tag }: Envelope): string =>
  [FORMAT, kid, ...[wrapped, iv, ciphertext, tag].map(text)].join('.')

/** Wrapped with an IV and tag of its own, in one part. */
const wrap = (kek: WrappingKey, aad: Buffer, key: Buffer): Buffer => Buffer.concat(encrypt(kek.key, aad, key))

const unwrap = (kek: WrappingKey, aad: Buffer, wrapped: Buffer): Buffer => {
  if (wrapped.length !== IV_BYTES + KEY_BYTES + TAG_BYTES) throw new SealError('A sealed value is malformed')
  const tagAt = wrapped.length - TAG_BYTES
  return decrypt(
    kek.key,
    aad,
    wrapped.subarray(0, IV_BYTES),
    wrapped.subarray(IV_BYTES, tagAt),
    wrapped.subarray(tagAt),
  )
}

/**
 * Seals with the current master key, opens with all of them.
 * @throws SealError when a master key is under 32 bytes
 */
export const createSealer = ({ current, previous = [] }: MasterKeys): Sealer => {
  const kek = wrappingKey(current)
  const known = new Map([...previous.map(wrappingKey), kek].map(key => [key.kid, key]))
  const recordKey = (place: SealPlace, { kid, wrapped }: Envelope): Buffer => {
    const wrapping = known.get(kid)
    if (wrapping === undefined) throw new SealError(`A sealed value needs master key ${kid}, which is not configured`)
    return unwrap(wrapping, aadOf(place), wrapped)
  }
  return {
    kid: kek.kid,
    seal: (place, secret) => {
      const aad = aadOf(place)
      const key = randomBytes(KEY_BYTES)
      const [iv, ciphertext, tag] = encrypt(key, aad, Buffer.from(secret))
      return render({ kid: kek.kid, wrapped: wrap(kek, aad, key), iv, ciphertext, tag })
    },
    open: (place, sealed) => {
      const envelope = parse(sealed)
      const { iv, ciphertext, tag } = envelope
      return decrypt(recordKey(place, envelope), aadOf(place), iv, ciphertext, tag).toString()
    },
    rewrap: (place, sealed) => {
      const envelope = parse(sealed)
      const key = recordKey(place, envelope)
      return render({ ...envelope, kid: kek.kid, wrapped: wrap(kek, aadOf(place), key) })
    },
  }
}
