/** The port to whatever carries mail away. */

/** A letter, ready to be sent. */
export interface Mail {
  /** The same for every attempt, so that whoever gets it twice can tell. */
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** A letter that was not taken. Says how far it came and never what another server wrote: that could be the letter. */
export class MailError extends Error {
  /** No further attempt makes sense: the server refuses this very letter. */
  readonly permanent: boolean

  constructor(message: string, options: { readonly permanent?: boolean } = {}) {
    super(message)
    this.name = 'MailError'
    this.permanent = options.permanent ?? false
  }
}

export interface MailTransport {
  /** Resolves once somebody else answers for the letter. Ends when the signal does. @throws MailError */
  send(mail: Mail, signal: AbortSignal): Promise<void>
}
