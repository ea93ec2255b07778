import type { CredentialSet, Credentials } from '../runtime/credentials/credentials.ts'

export interface MemoryCredentials extends Credentials {
  readonly kept: Map<string, CredentialSet>
}

/** Credentials in memory, for property runs. */
export const memoryCredentials = (): MemoryCredentials => {
  const kept = new Map<string, CredentialSet>()
  return {
    kept,
    read: async ({ uid }) => kept.get(uid),
    write: async ({ uid }, credentials) => {
      kept.set(uid, credentials)
    },
    delete: async ({ uid }) => {
      kept.delete(uid)
    },
  }
}
