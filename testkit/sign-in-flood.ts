/** Guesses at passwords, as many a second as is asked for, from many addresses: what is not answered does not hold back the next. */
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Flood {
  readonly url: string
  readonly perSecond: number
  readonly seconds: number
  /** How many addresses they come from by turns, as a trusted proxy says. */
  readonly addresses: number
  /** Accounts that there are; every other guess is at one that is not. */
  readonly emails: readonly string[]
}

/** How many were answered how: by status, with a word where a Retry-After is missing, and those without an answer as `lost`. */
export type FloodAnswers = Record<string, number>

interface Answer {
  readonly status: number
  readonly waits: boolean
}

const guess = (agent: Agent, url: string, email: string, address: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ email, password: 'wrong horse battery staple' })
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      'X-Forwarded-For': address,
    }
    const target = `${url}/v1/auth/builtin/sign-in`
    const outgoing = request(target, { agent, method: 'POST', headers, timeout: 20_000 }, response => {
      const { statusCode: status = 0, headers: given } = response
      response.once('error', reject).once('end', () => resolve({ status, waits: given['retry-after'] !== undefined }))
      response.resume()
    })
    outgoing.once('timeout', () => outgoing.destroy(new Error('No answer')))
    outgoing.once('error', reject)
    outgoing.end(body)
  })

/** Sends them, and waits for the last answer. */
export const floodSignIns = async ({ url, perSecond, seconds, addresses, emails }: Flood): Promise<FloodAnswers> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1000 })
  const answers: FloodAnswers = {}
  const count = (what: string): void => void (answers[what] = (answers[what] ?? 0) + 1)
  const began = performance.now()
  const all: Promise<void>[] = []
  for (let n = 0; n < perSecond * seconds; n++) {
    const ahead = began + (n * 1000) / perSecond - performance.now()
    if (ahead > 1) await sleep(ahead)
    const known = n % 2 === 0 ? emails[(n / 2) % emails.length] : undefined
    const place = n % addresses
    const address = `198.18.${place >> 8}.${place & 255}`
    const sent = guess(agent, url, known ?? `${randomUUID()}@example.com`, address)
    all.push(
      sent.then(
        ({ status, waits }) => count(status === 401 || waits ? String(status) : `${status} without Retry-After`),
        () => count('lost'),
      ),
    )
  }
  await Promise.all(all)
  agent.destroy()
  return answers
}
