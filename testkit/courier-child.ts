/** A replica that sends letters, to be killed: it gets what it needs by a message, and works until then. */
import { Registry } from 'prom-client'
import type { WebhookConfig } from '../apiserver/config/mail.ts'
import { Courier } from '../apiserver/mail/courier.ts'
import { openMailTransport } from '../apiserver/mail/open-mail-transport.ts'
import { Database } from '../apiserver/store/database.ts'
import { createSealer } from '../lib/credentials/seal.ts'
import { silentLog } from '../runtime/log/log.ts'

export interface CourierOrders {
  readonly databaseUrl: string
  /** Base64. */
  readonly masterKey: string
  readonly mail: WebhookConfig
}

process.once('message', ({ databaseUrl, masterKey, mail }: CourierOrders) => {
  void openMailTransport(mail).then(transport => {
    new Courier({
      database: new Database({ url: databaseUrl, log: silentLog }),
      transport,
      sealer: createSealer({ current: Buffer.from(masterKey, 'base64') }),
      consoleUrl: 'https://console.example.com',
      log: silentLog,
      registry: new Registry(),
      pollMs: 20,
    }).start()
  })
})
