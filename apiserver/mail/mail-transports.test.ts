import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import {
  type MailReceiver,
  type SmtpOptions,
  startMailRelay,
  startSmtpServer,
  type TestAuthority,
  testAuthority,
} from '../../testkit/mail-servers.ts'
import type { SmtpConfig } from '../config/mail.ts'
import { type Mail, MailError } from './mail-transport.ts'
import { openMailTransport } from './open-mail-transport.ts'

const MAIL: Mail = {
  id: 'let_06dm3qz5hx7n0c8k2v4r9w1tbe',
  to: 'ada@example.com',
  subject: 'Grüße\r\nBcc: eve@example.com',
  text: 'Eine Zeile, die länger ist als achtundsiebzig Zeichen: svc_mgl_canary0123456789012345678901234567890123456789\n',
  html: '<p>Grüße</p>\n',
}
const soon = (): AbortSignal => AbortSignal.timeout(15_000)

describe('letters by SMTP', () => {
  let ours: TestAuthority
  before(() => {
    ours = testAuthority()
  })

  const server = (options: Partial<SmtpOptions> & Pick<SmtpOptions, 'tls'>): Promise<MailReceiver> =>
    startSmtpServer({ identity: ours.identity(), ...options })
  const transport = (port: number, more: Partial<SmtpConfig> = {}) =>
    openMailTransport({
      by: 'smtp',
      host: '127.0.0.1',
      port,
      implicitTls: false,
      user: undefined,
      password: undefined,
      sender: 'service@example.com',
      caFile: ours.file,
      ...more,
    })

  for (const tls of ['implicit', 'starttls'] as const)
    it(`go over TLS (${tls}), as text and as HTML, to the one address`, async () => {
      const receiver = await server({ tls })
      await (await transport(receiver.port, { implicitTls: tls === 'implicit' })).send(MAIL, soon())
      const [letter] = receiver.letters
      assert.ok(letter)
      assert.deepEqual(
        [letter.to, letter.from, letter.text, letter.html, letter.id],
        ['ada@example.com', 'service@example.com', MAIL.text, MAIL.html, MAIL.id],
      )
      // A line end in a subject is no line end of the head.
      assert.match(letter.subject, /^Grüße Bcc: eve@example\.com$/)
      assert.match(letter.raw, /^From: Managed Postgres <service@example\.com>\r$/m)
      assert.match(letter.raw, /^Auto-Submitted: auto-generated\r$/m)
    })

  it('sign in where an account is configured, and do not leave when it is refused', async () => {
    const account = { user: 'service', password: 'canary-of-a-password' }
    const receiver = await server({ tls: 'starttls', account })
    await (await transport(receiver.port, account)).send(MAIL, soon())
    assert.equal(receiver.letters.length, 1)
    const wrong = await transport(receiver.port, { ...account, password: 'wrong canary' })
    await assert.rejects(wrong.send(MAIL, soon()), (error: unknown) => {
      assert.ok(error instanceof MailError)
      assert.deepEqual([error.message, error.permanent], ['The mail server answered 535 at AUTH PLAIN', false])
      return true
    })
    // A server that takes letters from everybody is not given them instead.
    const open = await server({ tls: 'starttls' })
    await assert.rejects((await transport(open.port, account)).send(MAIL, soon()), MailError)
    assert.equal(open.letters.length, 0)
  })

  it('are not given to a server without STARTTLS', async () => {
    const receiver = await server({ tls: 'none' })
    await assert.rejects((await transport(receiver.port)).send(MAIL, soon()), MailError)
    assert.deepEqual([receiver.connections(), receiver.letters.length], [1, 0])
  })

  for (const tls of ['implicit', 'starttls'] as const)
    it(`are not given to a server with a certificate of somebody else, or for another name (${tls})`, async () => {
      const implicitTls = tls === 'implicit'
      const receivers = [
        await server({ tls, identity: testAuthority().identity() }),
        await server({ tls, identity: ours.identity('mail.example.com') }),
      ]
      for (const receiver of receivers) {
        await assert.rejects((await transport(receiver.port, { implicitTls })).send(MAIL, soon()), MailError)
        assert.equal(receiver.letters.length, 0)
      }
      const good = await server({ tls })
      await assert.rejects(
        (await transport(good.port, { implicitTls, caFile: undefined })).send(MAIL, soon()),
        MailError,
      )
      assert.equal(good.letters.length, 0)
    })

  it('are tried again after a refusal for now, and not after one for good', async () => {
    for (const [code, respondAt, permanent] of [
      [451, 'letter', false],
      [452, 'recipient', false],
      [550, 'recipient', true],
      [554, 'letter', true],
    ] as const) {
      const receiver = await server({ tls: 'starttls', respondAt, respond: n => (n === 1 ? code : undefined) })
      const way = await transport(receiver.port)
      await assert.rejects(way.send(MAIL, soon()), (error: unknown) => {
        assert.ok(error instanceof MailError)
        assert.equal(error.permanent, permanent, `${code}`)
        assert.match(error.message, new RegExp(`^The mail server answered ${code} at (RCPT TO|DATA)$`))
        return true
      })
      await way.send(MAIL, soon())
      assert.equal(receiver.letters.length, 1)
    }
  })

  it('end with their attempt: a server that says nothing, or never comes to an end, holds nobody up', async () => {
    const silent = createServer(socket => void socket.on('error', () => undefined))
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const slow = await server({ tls: 'starttls', delayMs: 60_000 })
    for (const port of [(silent.address() as { port: number }).port, slow.port])
      await assert.rejects((await transport(port)).send(MAIL, AbortSignal.timeout(300)), {
        name: 'MailError',
        message: 'The mail server took too long',
      })
    silent.close()
  })
})

describe('letters by a relay', () => {
  let ours: TestAuthority
  before(() => {
    ours = testAuthority()
  })
  const TOKEN = 'canary-relay-token'
  const way = (url: string, caFile: string | undefined = ours.file, token = TOKEN) =>
    openMailTransport({ by: 'webhook', url, token, caFile })

  it('are one POST each, with the bearer, as JSON of four fields', async () => {
    const relay = await startMailRelay({ identity: ours.identity(), token: TOKEN })
    await (await way(relay.url)).send(MAIL, soon())
    const { id: _id, ...fields } = MAIL
    assert.deepEqual(JSON.parse(relay.letters[0]?.raw ?? ''), fields)
    const [request] = relay.requests
    assert.deepEqual([request?.headers['content-type'], request?.path], ['application/json', '/letters'])
    assert.equal(request?.headers['idempotency-key'], MAIL.id)
  })

  it('go nowhere else: a redirect is a refusal', async () => {
    const elsewhere = await startMailRelay({ identity: ours.identity(), token: TOKEN })
    for (const status of [301, 302, 307, 308]) {
      const relay = await startMailRelay({
        identity: ours.identity(),
        token: TOKEN,
        respond: () => status,
        location: elsewhere.url,
      })
      await assert.rejects((await way(relay.url)).send(MAIL, soon()), {
        message: `The mail relay answered ${status}`,
        permanent: false,
      })
    }
    assert.equal(elsewhere.requests.length, 0)
  })

  it('are not given to a relay that is not proved, nor does its bearer go there', async () => {
    const relay = await startMailRelay({ identity: testAuthority().identity(), token: TOKEN })
    await assert.rejects((await way(relay.url)).send(MAIL, soon()), MailError)
    await assert.rejects((await way(relay.url, undefined)).send(MAIL, soon()), MailError)
    assert.equal(relay.requests.length, 0)
  })

  it('say of a failure how far they came, and nothing that was answered', async () => {
    const relay = await startMailRelay({ identity: ours.identity(), token: 'another one' })
    await assert.rejects((await way(`${relay.url}?key=canary`)).send(MAIL, soon()), (error: unknown) => {
      assert.ok(error instanceof MailError)
      assert.deepEqual([error.message, error.permanent, error.cause], ['The mail relay answered 401', false, undefined])
      return true
    })
    await relay.stop()
    await assert.rejects((await way(relay.url)).send(MAIL, soon()), {
      message: 'The mail relay cannot be reached: ECONNREFUSED',
    })
  })

  it('end with their attempt', async () => {
    const relay = await startMailRelay({ identity: ours.identity(), token: TOKEN, delayMs: 60_000 })
    await assert.rejects((await way(relay.url)).send(MAIL, AbortSignal.timeout(300)), {
      message: 'The mail relay took too long',
    })
  })

  it('need authorities that can be read', async () => {
    for (const file of ['/nowhere/at/all.pem', new URL(import.meta.url).pathname])
      await assert.rejects(way('https://127.0.0.1:1/', file), (error: unknown) => {
        assert.ok(error instanceof ConfigError)
        return error.message.startsWith('Cannot use SERVICE_MAIL_CA_FILE: ')
      })
  })
})
