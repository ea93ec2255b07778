/** A thread that asks and judges, so that the server under test has one to itself. */
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { closeRawConnections, sendUnjudged } from '../raw-http.ts'
import { drawRequest, type World } from './draw-request.ts'
import type { FromWorker, FuzzOrder, ToWorker } from './fuzz.ts'
import { AnswerJudge } from './judge-answer.ts'
import { readOperations } from './openapi-operations.ts'

const AT_ONCE = 24
/** A session may end by any request that is made with it. */
const REQUESTS_A_SESSION = 500
const MOST_FINDINGS = 20
const DEADLINE_MS = 20_000

const order = workerData as FuzzOrder
const port = parentPort
if (port === null) throw new Error('This is a thread of fuzz.ts')
const say = (word: FromWorker): void => port.postMessage(word)

const operations = readOperations()
const judge = new AnswerJudge(operations)
let world: World = order.world
const findings: string[] = []
const statuses = new Map<number, number>()
const succeeded = new Set<string>()

/** Nothing is asked meanwhile: what guesses passwords of whoever is to sign in would lock them out. */
const renewSession = async (): Promise<void> => {
  const answer = once(port, 'message') as Promise<[ToWorker]>
  say({ type: 'session' })
  const [{ session }] = await answer
  world = { ...world, session }
}

const inTime = <T>(work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`No answer in ${DEADLINE_MS} ms`)), DEADLINE_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const ask = async (n: number): Promise<void> => {
  const fuzzed = drawRequest(operations, world, order.seed, n)
  const { operation, request, faults, isMoved } = fuzzed
  let fault: string | undefined
  let text = ''
  try {
    const answer = await inTime(sendUnjudged(order.url, request))
    text = answer.text
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    if (answer.status < 300 && !isMoved) succeeded.add(operation.operationId)
    fault = judge.fault(fuzzed, answer, world.canary)
  } catch (error) {
    fault = String(error)
  }
  if (fault !== undefined && findings.length < MOST_FINDINGS)
    findings.push(
      `${fault}: seed ${order.seed}, request ${n}: ${request.method} ${request.target.slice(0, 200)} (${faults.join('; ') || 'good'}) ${request.body?.toString().slice(0, 300) ?? ''} -> ${text.slice(0, 300)}`,
    )
}

const end = order.first + order.count
let next = order.first
while (next < end) {
  const pause = Math.min(next + REQUESTS_A_SESSION, end)
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < pause) await ask(next++)
    }),
  )
  if (next < end) await renewSession()
}
closeRawConnections()
say({ type: 'report', report: { findings, statuses: [...statuses], succeeded: [...succeeded] } })
port.close()
