/** The figures of a whole single box on a real disk, through its public API. Run: node bench/single-box.ts */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BoxProcess } from '../e2e/box-process.ts'
import { singleBoxWorld } from '../e2e/single-box-world.ts'
import { Tenant } from '../e2e/tenant.ts'
import { changeToStatus } from './change-to-status.ts'
import { type Figure, renderFigures } from './figure.ts'
import { idle } from './idle.ts'
import { createAtOnce, createOneByOne, resume } from './lifecycle.ts'

const ENVIRONMENTS = Number(process.env['BENCH_ENVIRONMENTS'] ?? 50)
const AT_ONCE = 20
const RESUMES = 20
const CHANGES = 200
const IDLE_MS = 60_000

/** Starts a box, measures it and removes it. */
export const measureSingleBox = async (): Promise<readonly Figure[]> => {
  const box = await BoxProcess.start({
    folder: mkdtempSync(join(tmpdir(), 'svc-bench-')),
    environment: { SERVICE_LOG_LEVEL: 'warn' },
  })
  const world = singleBoxWorld(box)
  try {
    const tenant = await Tenant.create(world)
    const figures: Figure[] = [await createAtOnce(tenant, AT_ONCE), await createOneByOne(tenant, ENVIRONMENTS)]
    figures.push(await resume(tenant, Math.min(RESUMES, ENVIRONMENTS)))
    figures.push(await changeToStatus(tenant, 'one-0', CHANGES))
    const pid = box.child.pid
    if (pid === undefined) throw new Error('The box has no process')
    figures.push(...(await idle(pid, ENVIRONMENTS, IDLE_MS)))
    return figures
  } finally {
    await world.close()
    await box.stop()
    await box.remove()
  }
}

if (import.meta.main) console.log(renderFigures(await measureSingleBox()))
