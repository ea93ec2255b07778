/** How to sign in to a Kubernetes API server, now and later: credentials rotate. */

/** Material for TLS connections, as node:tls takes it. */
export interface TlsMaterial {
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly passphrase?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** How to sign in now: credentials rotate, so it is asked for again and again. */
export interface SignIn {
  readonly tls: TlsMaterial
  readonly headers: Readonly<Record<string, string>>
}

export interface ClusterAccess {
  /** `https://host:port`. */
  readonly origin: string
  /** What stands before every path; usually ''. */
  readonly prefix: string
  /** The namespace of the context or of the pod, where there is one. */
  readonly namespace: string | undefined
  /** Reads files and runs plugins at most once a minute; `afresh` does so now. */
  signIn(afresh?: boolean): Promise<SignIn>
}

/** Of a server's URL. */
export const addressOf = (server: string): Pick<ClusterAccess, 'origin' | 'prefix'> => {
  const { origin, pathname } = new URL(server)
  return { origin, prefix: pathname.replace(/\/+$/, '') }
}

/** Tokens of pods and plugins change below us: client-go reads them again as often. */
const REREAD_MS = 60_000

/** Asks `read` again once a minute, and at once where it is told to. @param current what was read just now */
export const rereading = (current: SignIn, read: (afresh: boolean) => Promise<SignIn>): ClusterAccess['signIn'] => {
  let last = current
  let readAt = performance.now()
  const reading = new Map<boolean, Promise<SignIn>>()
  const readAgain = async (afresh: boolean): Promise<SignIn> => {
    last = await read(afresh)
    readAt = performance.now()
    return last
  }
  return async (afresh = false) => {
    if (!afresh && performance.now() - readAt < REREAD_MS) return last
    const running = reading.get(afresh) ?? readAgain(afresh).finally(() => reading.delete(afresh))
    reading.set(afresh, running)
    // What cannot be read this time may still be valid; the API server tells when it is not.
    return afresh ? running : running.catch(() => last)
  }
}
