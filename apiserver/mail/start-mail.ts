import type { Registry } from 'prom-client'
import type { Sealer } from '../../lib/credentials/seal.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { Database } from '../store/database.ts'
import { Courier } from './courier.ts'
import type { MailTransport } from './mail-transport.ts'
import type { Mailbox } from './post-letter.ts'

export interface MailOptions {
  /** undefined: mail is not configured. */
  readonly transport: MailTransport | undefined
  readonly database: Database
  readonly sealer: Sealer
  readonly consoleUrl: string
  readonly log: Log
  readonly registry: Registry
}

export interface RunningMail {
  readonly mailbox: Mailbox | undefined
  stop(): Promise<void>
}

/** Starts the courier, where there is a way for letters. */
export const startMail = ({ transport, ...options }: MailOptions): RunningMail => {
  if (transport === undefined) return { mailbox: undefined, stop: async () => undefined }
  const courier = new Courier({ ...options, transport })
  courier.start()
  return { mailbox: { sealer: options.sealer, wake: () => courier.wake() }, stop: () => courier.stop() }
}
