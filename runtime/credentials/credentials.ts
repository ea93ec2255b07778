/** The two sign-ins of an environment: `app` is the tenant's, `ops` is the control plane's own. */
export const CREDENTIAL_ROLES = ['app', 'ops'] as const
export type CredentialRole = (typeof CREDENTIAL_ROLES)[number]

/** A stored sign-in. The password is never logged and never leaves through anything but this port. */
export interface DatabaseCredential {
  readonly username: string
  readonly password: string
}

/** One sign-in for each role. */
export type RoleCredentials = Readonly<Record<CredentialRole, DatabaseCredential>>

/**
 * The credentials of one environment. Whoever signs in takes those of the roles; `next` is for whoever rotates them alone:
 * kept before Postgres learns of them, so that a crash in between loses nothing, and not yet shown to anybody.
 */
export type CredentialSet = RoleCredentials & {
  /** The request to rotate that these were made for; absent: none. */
  readonly rotation?: string
  readonly next?: RoleCredentials & { readonly rotation: string }
}

/** Which environment's: the uid decides, so that an id used again never meets its predecessor's. */
export interface CredentialOwner {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/**
 * Keeps environments' passwords: a Secret on Kubernetes, a sealed table on the single box. Never listed, never watched.
 * The operator writes, the API server reads. Throws StoreError `Unavailable` when it cannot be reached.
 */
export interface Credentials {
  /** What is kept, or undefined. */
  read(owner: CredentialOwner): Promise<CredentialSet | undefined>
  /**
   * Keeps these, replacing others of the same owner, all or nothing. `first`: none were kept a moment ago, so that no look is needed
   * where that is still so; where it is not, it changes nothing.
   */
  write(owner: CredentialOwner, credentials: CredentialSet, options?: { readonly first?: boolean }): Promise<void>
  /**
   * Whether what others find of these says the same: where clients read them from a place of their own, a crash or a hand
   * may have left something else there. Writing them again repairs it.
   */
  isPublished(owner: CredentialOwner, credentials: CredentialSet): Promise<boolean>
  /** Forgets them; harmless when there are none. */
  delete(owner: CredentialOwner): Promise<void>
}
