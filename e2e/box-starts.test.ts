/** Stops that are not waited for, and what was there before them: the next start goes on from there. */
import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FIRST_ENVIRONMENT, FIRST_ORGANIZATION } from '../box/first-start.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { ApiClient, type EnvironmentBody, type OperationBody } from './api-client.ts'
import { BoxProcess } from './box-process.ts'
import { FIRST, firstEnvironmentServes } from './first-environment.ts'

describe('starts and stops of a single box', function () {
  this.timeout(240_000)
  let box: BoxProcess
  beforeEach(async () => {
    box = await BoxProcess.create()
  })
  afterEach(() => box.remove())

  it('a stop right after the start waits for nobody: its own calls leave no connection behind', async () => {
    await box.start({ SERVICE_STOP_GRACE_SECONDS: '300' })
    box.child.kill('SIGTERM')
    const { code } = await box.ended()
    assert.equal(code, 0)
  })

  it('a second Ctrl-C ends it at once; databases that still run are adopted', async () => {
    await box.start()
    const { controlPlane } = box.dataFolders()
    const before = findPostmaster(controlPlane)?.pid
    // A call under way keeps the first one waiting; the databases are stopped only after it.
    const api = box.api()
    const calls = Promise.allSettled(
      Array.from({ length: 20 }, () => api.call('GET', FIRST).then(() => api.call('GET', FIRST))),
    )
    box.child.kill('SIGINT')
    box.child.kill('SIGINT')
    const { code, output } = await box.ended(5000)
    await calls
    // The two may have come as one, or the first one may have been faster.
    assert.ok(code === 130 || /^Stopped$/m.test(output), `${code}: ${output}`)
    const left = findPostmaster(controlPlane)?.pid
    await box.start()
    if (left !== undefined) assert.equal(findPostmaster(controlPlane)?.pid, before)
    await firstEnvironmentServes(box)
  })

  it('what slept before the machine stopped sleeps on after it, and can be woken', async () => {
    await box.start()
    const suspended = await box.api().expect<OperationBody>(202, 'POST', `${FIRST}/suspend`)
    assert.equal((await box.api().operation(FIRST_ORGANIZATION, suspended.id)).state, 'succeeded')
    await box.stop('SIGKILL')
    await box.killPostgres()
    await box.start()
    assert.equal((await box.api().expect<EnvironmentBody>(200, 'GET', FIRST)).phase, 'suspended')
    assert.equal(findPostmaster(box.dataFolders().environments[0]!), undefined)
    const resumed = await box.api().expect<OperationBody>(202, 'POST', `${FIRST}/resume`)
    assert.equal((await box.api().operation(FIRST_ORGANIZATION, resumed.id)).state, 'succeeded')
    await firstEnvironmentServes(box)
  })

  it('is ready only once its answers say how everything is after a crash of the machine', async () => {
    await box.start()
    await box.stop('SIGKILL')
    await box.killPostgres()
    const starting = box.start()
    const isReady = (): Promise<boolean> =>
      fetch(`${box.baseUrl}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      )
    while (!(await isReady())) await sleep(2)
    const { phase } = await box.api().expect<EnvironmentBody>(200, 'GET', FIRST)
    const serves = findPostmaster(box.dataFolders().environments[0]!)?.status === 'ready'
    assert.ok(phase !== 'ready' || serves, 'It is said to be ready, and does not run')
    await starting
  })

  /** What comes after the word that it is ready may take a moment on its way. */
  const printed = async (text: string): Promise<void> => {
    for (const until = Date.now() + 10_000; !box.output.includes(text) && Date.now() < until; ) await sleep(20)
  }

  it('a first token that is lost or revoked has a way back, to the same user', async () => {
    await box.start()
    const file = join(box.home, 'credentials.json')
    const tokenOf = (text: string): string => /svc_pat_\w+/.exec(text)![0]
    const status = async (token: string): Promise<number> =>
      (await new ApiClient(box.baseUrl, token).call('GET', FIRST)).status
    const lost = tokenOf(readFileSync(file, 'utf8'))
    await box.stop()
    rmSync(file)
    await box.start()
    // Shown again, for it is a new one; the lost one is dead, and what it made is still there for its successor.
    const found = tokenOf(readFileSync(file, 'utf8'))
    await printed('svc_pat_')
    assert.equal(tokenOf(box.output), found)
    assert.deepEqual([await status(lost), await status(found)], [401, 200])
    const { tokens } = await box
      .api()
      .expect<{ tokens: { id: string; revoked_at: number | null }[] }>(200, 'GET', '/v1/account/tokens')
    const [live, ...more] = tokens.filter(({ revoked_at }) => revoked_at === null)
    assert.equal(more.length, 0)
    await box.api().expect(200, 'DELETE', `/v1/account/tokens/${live!.id}`)
    await box.stop()
    await box.start()
    // Revoked on purpose: a restart brings nothing back by itself, but says how.
    assert.equal(readFileSync(file, 'utf8').includes(found), true)
    await printed('revoked')
    assert.match(box.output, /revoked.*make user EMAIL=local-operator/)
    const another = await box.run('make-user.ts', { EMAIL: 'local-operator' })
    assert.deepEqual([another.code, await status(tokenOf(another.output))], [0, 200])
    const { members } = await new ApiClient(box.baseUrl, tokenOf(another.output)).expect<{
      members: { role: string; name: string }[]
    }>(200, 'GET', `/v1/organizations/${FIRST_ORGANIZATION}/members`)
    assert.deepEqual(
      members.map(({ role, name }) => [role, name]),
      [['owner', 'local-operator']],
    )
  })

  it('make user prints who it made and a token that works, until make disable-user, with the control plane running and without', async () => {
    const email = { EMAIL: 'Ada@Example.com' }
    // Before there is anything: the folder is made.
    const first = await box.run('make-user.ts', email)
    assert.equal(first.code, 0, first.output)
    await box.start()
    const second = await box.run('make-user.ts', email)
    const tokens = [first, second].map(({ output }) => output.trim().split('\n').at(-1)!)
    const subjects = [first, second].map(({ output }) => /user:usr_\w+/.exec(output)?.[0])
    assert.equal(subjects[0], subjects[1])
    for (const token of tokens) {
      const answer = await fetch(`${box.baseUrl}/v1/organizations`, { headers: { authorization: `Bearer ${token}` } })
      // A user of their own: nothing of the first organization is seen.
      assert.deepEqual(
        [answer.status, ((await answer.json()) as { organizations: unknown[] }).organizations],
        [200, []],
      )
    }
    // By what was printed, the first token's owner makes her a member: by the subject, and by the address.
    for (const subject of [subjects[0]!, email.EMAIL]) {
      await box
        .api()
        .expect(200, 'PUT', `/v1/organizations/${FIRST_ORGANIZATION}/members/${encodeURIComponent(subject)}`, {
          body: { role: 'viewer' },
        })
      const ada = new ApiClient(box.baseUrl, tokens[1]!)
      assert.equal((await ada.expect<EnvironmentBody>(200, 'GET', FIRST)).environment_id, FIRST_ENVIRONMENT)
      await box.api().call('DELETE', `/v1/organizations/${FIRST_ORGANIZATION}/members/${encodeURIComponent(subject)}`)
      assert.equal((await ada.call('GET', FIRST)).status, 404)
    }
    // Shut out with the control plane running, let in again without; the token is the same.
    const listing = async () =>
      (await fetch(`${box.baseUrl}/v1/organizations`, { headers: { authorization: `Bearer ${tokens[1]!}` } })).status
    const shut = await box.run('disable-user.ts', email)
    assert.deepEqual([shut.code, await listing()], [0, 401], shut.output)
    assert.equal((await box.run('make-user.ts', email)).code, 1)
    await box.stop()
    const back = await box.run('disable-user.ts', { ...email, ENABLE: '1' })
    await box.start()
    assert.deepEqual([back.code, await listing()], [0, 200], back.output)
    const unknown = await box.run('disable-user.ts', { EMAIL: 'nobody@example.com' })
    assert.deepEqual([unknown.code, unknown.output.trim().split('\n').length], [1, 1])
    const malformed = await box.run('make-user.ts', { EMAIL: 'nobody' })
    assert.deepEqual([malformed.code, malformed.output.trim().split('\n').length], [1, 1])
    const log = readFileSync(join(box.home, 'control-plane.log'), 'utf8')
    for (const token of tokens) assert.ok(!log.includes(token))
  })
})
