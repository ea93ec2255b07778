/** What sessions with thousands of servers have in common: parsing the same certificates for each of them costs more than its query. */
import { createSecureContext, type SecureContext } from 'node:tls'

/** Whom to trust, and by what to be known where a server asks for it; PEM. */
export interface TlsMaterial {
  readonly ca: string
  readonly cert?: string
  readonly key?: string
}

/** Those of today and, while they change, those of a moment ago: of clients without a certificate, and of the superuser. */
const MOST = 4
const kept = new Map<string, SecureContext>()

/** The same context for the same material. @throws Error where it is not PEM */
export const tlsContext = ({ ca, cert, key }: TlsMaterial): SecureContext => {
  const material = JSON.stringify([ca, cert, key])
  const context = kept.get(material) ?? createSecureContext({ ca, cert, key })
  // What was used last is forgotten last.
  kept.delete(material)
  kept.set(material, context)
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST) break
    kept.delete(oldest)
  }
  return context
}
