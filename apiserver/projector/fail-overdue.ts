import { overdueEnvironments, readUnderWay } from '../store/environment-folds.ts'
import { lockEnvironmentById } from '../store/environments.ts'
import { judgeOpenOperation } from './judge-open-operation.ts'
import { moveByJudgement } from './move-by-judgement.ts'
import { projectEnvironment } from './project-environment.ts'
import type { Projection } from './projection.ts'

/**
 * Ends operations whose deadline has passed. What is there is folded first: an outcome that was reached in time, but not
 * folded yet (the database was away), counts. Where nothing can be seen the deadline alone decides.
 */
export const failOverdue = async (projection: Projection): Promise<void> => {
  for (const { environmentRow, namespace, resourceName } of await overdueEnvironments(projection.sql)) {
    try {
      await projectEnvironment({ namespace, name: resourceName }, projection)
    } catch (error) {
      projection.log.warn({ err: error, namespace, name: resourceName }, 'Cannot look at an overdue environment')
    }
    await projection.fenced(async sql => {
      const row = await lockEnvironmentById(sql, environmentRow)
      const underWay = await readUnderWay(sql, environmentRow, undefined)
      if (row === undefined || underWay.operation?.overdue !== true) return
      const judgement = judgeOpenOperation(underWay, undefined)
      if (judgement === undefined) return
      await moveByJudgement(sql, underWay.operation, judgement, row, row.phase, projection.log)
    })
  }
}
