/**
 * X.509 certificates for a small private authority: EC P-256 keys, SHA-256 signatures. Node can read certificates and sign
 * bytes but not make a certificate; these are the hundred lines between, instead of a tree of fifteen packages.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { bits, explicit, implicit, integer, objectId, octets, sequence, set, time, utf8, yes } from './der.ts'

/** A certificate and its key, as PEM. The key is a secret. */
export interface Identity {
  readonly certificate: string
  readonly key: string
}

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const

/** Clocks differ a little: what is issued now is valid for those that are behind. */
const BACKDATED_MS = 3_600_000
const DAY_MS = 86_400_000

const name = (commonName: string): Buffer => sequence(set(sequence(objectId(OID.commonName), utf8(commonName))))

const extension = (id: string, critical: boolean, value: Buffer): Buffer =>
  sequence(objectId(id), ...(critical ? [yes()] : []), octets(value))

const pem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`

const spki = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })
const keyId = (key: KeyObject): Buffer => createHash('sha256').update(spki(key)).digest().subarray(0, 20)

interface Request {
  readonly subject: string
  readonly publicKey: KeyObject
  readonly issuer: { readonly subject: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  readonly days: number
  readonly now: Date
  readonly extensions: readonly Buffer[]
}

const issue = ({ subject, publicKey, issuer, days, now, extensions }: Request): string => {
  const algorithm = sequence(objectId(OID.ecdsaWithSha256))
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40 // positive, and never with leading zeros
  const content = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(serial),
    algorithm,
    name(issuer.subject),
    sequence(time(new Date(now.getTime() - BACKDATED_MS)), time(new Date(now.getTime() + days * DAY_MS))),
    name(subject),
    spki(publicKey),
    explicit(
      3,
      sequence(
        ...extensions,
        extension(OID.subjectKeyId, false, octets(keyId(publicKey))),
        extension(OID.authorityKeyId, false, sequence(implicit(0, keyId(issuer.publicKey)))),
      ),
    ),
  )
  return pem(sequence(content, algorithm, bits(sign('sha256', content, issuer.privateKey))))
}

const newKey = (): { publicKey: KeyObject; privateKey: KeyObject; text: string } => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  return { ...pair, text: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** Makes an authority that signs certificates of servers and clients, and no other authority's. */
export const makeAuthority = (subject: string, days: number, now: Date): Identity => {
  const { publicKey, privateKey, text } = newKey()
  const certificate = issue({
    subject,
    publicKey,
    issuer: { subject, privateKey, publicKey },
    days,
    now,
    extensions: [
      extension(OID.basicConstraints, true, sequence(yes(), integer(Buffer.from([0])))),
      extension(OID.keyUsage, true, bits(Buffer.from([0b0000_0110]), 1)), // keyCertSign, cRLSign
    ],
  })
  return { certificate, key: text }
}

/** Who signs. */
export interface Authority {
  readonly certificate: X509Certificate
  readonly key: KeyObject
}

const issuerOf = ({ certificate, key }: Authority): Request['issuer'] => {
  const commonName = /^CN=(.*)$/m.exec(certificate.subject)?.[1]
  if (commonName === undefined) throw new Error('Cannot sign a certificate: the authority has no common name')
  return { subject: commonName, privateKey: key, publicKey: createPublicKey(key) }
}

/** Makes a certificate for a client that is known by a common name, signed by an authority. */
export const makeClientIdentity = (authority: Authority, commonName: string, days: number, now: Date): Identity => {
  const { publicKey, text } = newKey()
  const certificate = issue({
    subject: commonName,
    publicKey,
    issuer: issuerOf(authority),
    days,
    now,
    extensions: [
      extension(OID.basicConstraints, true, sequence()),
      extension(OID.keyUsage, true, bits(Buffer.from([0b1000_0000]), 7)), // digitalSignature
      extension(OID.extendedKeyUsage, false, sequence(objectId(OID.clientAuth))),
    ],
  })
  return { certificate, key: text }
}

/** Makes a server's certificate for names and addresses, signed by an authority. */
export const makeServerIdentity = (
  authority: Authority,
  hosts: readonly string[],
  days: number,
  now: Date,
): Identity => {
  const { publicKey, text } = newKey()
  const issuer = issuerOf(authority)
  const alternatives = hosts.map(host =>
    isIP(host) === 0
      ? implicit(2, Buffer.from(host, 'ascii'))
      : implicit(7, Buffer.from(ipaddr.parse(host).toByteArray())),
  )
  const certificate = issue({
    // A common name holds 64 characters at most; clients look at the alternatives.
    subject: (hosts[0] ?? 'server').slice(0, 64),
    publicKey,
    issuer,
    days,
    now,
    extensions: [
      extension(OID.basicConstraints, true, sequence()),
      extension(OID.keyUsage, true, bits(Buffer.from([0b1000_0000]), 7)), // digitalSignature
      extension(OID.extendedKeyUsage, false, sequence(objectId(OID.serverAuth))),
      extension(OID.subjectAltName, false, sequence(...alternatives)),
    ],
  })
  return { certificate, key: text }
}
