/** Letters by SMTP, from the settings to what a letter opens: asked for at one replica, good at the other. */
import assert from 'node:assert/strict'
import { fromAnywhere, type LoginWorld, linkAndCode, type MailWay, startLoginWorld } from '../../testkit/login-world.ts'
import { skipBecause } from '../../testkit/skip-because.ts'

const WAYS = { starttls: 'STARTTLS', implicit: 'implicit TLS, on port 465' } as const satisfies Partial<
  Record<MailWay, string>
>

for (const [way, name] of Object.entries(WAYS) as [keyof typeof WAYS, string][])
  describe(`mail by ${name}`, () => {
    let world: LoginWorld
    let isOpen = false
    before(async function () {
      try {
        world = await startLoginWorld({
          mail: way,
          replicas: 'processes',
          environment: { SERVICE_PUBLIC_SIGNUP: '1' },
        })
        isOpen = true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
        skipBecause(this, 'this account may not listen on port 465')
      }
    })
    after(async () => {
      if (isOpen) await world.stop()
    })

    for (const [from, to] of [
      [0, 1],
      [1, 0],
    ] as const)
      it(`signs in who asked replica ${from} for a letter and shows it to replica ${to}`, async () => {
        const email = `ada${from}@example.com`
        const asked = await world.replicas[from].call('requestMagicLink', { body: { email }, ...fromAnywhere() })
        assert.equal(asked.status, 202, asked.text)
        const letter = await world.nextLetter(email)
        assert.equal(letter.from, 'service@example.com')
        const { token, code } = linkAndCode(letter)
        const body = from === 0 ? { token } : { email, code }
        const answer = await world.replicas[to].call('verifyMagicLink', { body, ...fromAnywhere() })
        assert.deepEqual([answer.status, answer.body.user.email], [200, email], answer.text)
        await world.mailIsOut()
        const [row] = await world.api.plane.database.rows<{ state: string; secret: string | null }>(
          `select state, sealed_secret as secret from mail_outbox where about = $1`,
          [email],
        )
        assert.deepEqual(row, { state: 'sent', secret: null })
      })
  })
