/** What of a Secret is secret: whoever reads it elsewhere may do what its owner may. */

/** Says who and where, or says again in another form what another key holds. */
const PLAIN = new Set([
  ...['host', 'port', 'database', 'user', 'username', 'ca.crt', 'tls.crt', 'postgresql.conf'],
  ...['uri', 'jdbc-uri', 'pgpass', 'url', 'owner-url', 'store-url'],
])
/** Shorter ones stand in other words by chance. */
const SHORTEST = 12

const passwordsIn = (value: unknown): string[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, inner]) =>
        key === 'password' && typeof inner === 'string' ? [inner] : passwordsIn(inner),
      )
    : []

/** The secrets in one entry of a Secret's data, as they might stand in a text. @param value in base64, as it is on the wire */
export const secretsIn = (key: string, value: string): readonly string[] => {
  if (PLAIN.has(key)) return []
  const text = Buffer.from(value, 'base64').toString('utf8')
  if (text.includes('CERTIFICATE-----')) return []
  // A key is many lines, and no line of it is another one's.
  if (text.includes('PRIVATE KEY-----')) return [text.split('\n')[1]!.trim()]
  if (text.startsWith('{')) return passwordsIn(JSON.parse(text))
  const printable = /^[\x20-\x7e]+\n?$/.test(text)
  return [printable ? text.trim() : value].filter(secret => secret.length >= SHORTEST)
}
