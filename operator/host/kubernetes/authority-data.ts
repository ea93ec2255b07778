/** The authority as the data of its Secret. */
import { type AuthorityState, isIdentity } from './authority.ts'
import type { Secret } from './object-types.ts'

/** In the form of a merge patch: what is no more is null where it may have been. */
export const dataOf = (state: AuthorityState): Record<string, string | null> => {
  const entries: Record<string, string | undefined> = {
    'ca.crt': state.signing.certificate,
    'ca.key': state.signing.key,
    'next.crt': state.successor?.certificate,
    'next.key': state.successor?.key,
    'next.from': state.successor?.from,
    'former.crt': state.former?.certificate,
    'former.until': state.former?.until,
    'accepted.at': state.acceptedAt,
  }
  return Object.fromEntries(
    Object.entries(entries).map(([name, text]) => [name, text === undefined ? null : btoa(text)]),
  )
}

/** The authority in a Secret; undefined where there is none that can be used. */
export const stateIn = (secret: Secret | undefined): AuthorityState | undefined => {
  const read = (name: string): string | undefined => {
    const text = secret?.data?.[name]
    return text === undefined || text === '' ? undefined : atob(text)
  }
  const [certificate, key] = [read('ca.crt'), read('ca.key')]
  if (certificate === undefined || key === undefined || !isIdentity({ certificate, key })) return undefined
  const [nextCertificate, nextKey, from] = [read('next.crt'), read('next.key'), read('next.from')]
  const [formerCertificate, until] = [read('former.crt'), read('former.until')]
  const acceptedAt = read('accepted.at')
  return {
    signing: { certificate, key },
    ...(nextCertificate === undefined || nextKey === undefined || from === undefined
      ? {}
      : { successor: { certificate: nextCertificate, key: nextKey, from } }),
    ...(formerCertificate === undefined || until === undefined
      ? {}
      : { former: { certificate: formerCertificate, until } }),
    ...(acceptedAt === undefined ? {} : { acceptedAt }),
  }
}

export const withoutNulls = (data: Record<string, string | null>): Record<string, string> =>
  Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string] => entry[1] !== null))
