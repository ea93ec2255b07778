import type { CredentialSet, Credentials } from '../runtime/credentials/credentials.ts'

export interface MemoryCredentials extends Credentials {
  readonly kept: Map<string, CredentialSet>
  /** What clients find, by uid. */
  readonly published: Map<string, string>
}

/** Credentials in memory, for property runs. */
export const memoryCredentials = (): MemoryCredentials => {
  const kept = new Map<string, CredentialSet>()
  const published = new Map<string, string>()
  return {
    kept,
    published,
    isPublished: async ({ uid }, { app }) => published.get(uid) === app.password,
    read: async ({ uid }) => kept.get(uid),
    write: async ({ uid }, credentials) => {
      kept.set(uid, credentials)
      published.set(uid, credentials.app.password)
    },
    delete: async ({ uid }) => {
      kept.delete(uid)
      published.delete(uid)
    },
  }
}
