/** What an endpoint's handler is given and answers: computed from the contract, so that a missing handler does not compile. */
import type { Call, OpenCall, Reply } from '../commands/call.ts'
import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Route, StatusOf } from '../contract/route.ts'
import type { Routes } from '../contract/routes.ts'

/** A request that was parsed, whose caller was authenticated and may make it. */
export interface Input<R extends Route> {
  readonly params: ParamsOf<R>
  readonly query: QueryOf<R>
  readonly body: BodyOf<R>
  readonly call: R['policy'] extends 'public' | 'public.or-session' ? OpenCall : Call
}

type Answer<R extends Route> = Reply<StatusOf<R>, AnswerOf<R>>

/** The handlers of all routes, over the context that they work with. */
export type HandlersOver<Context> = {
  readonly [Id in keyof Routes]: (input: Input<Routes[Id]>, context: Context) => Promise<Answer<Routes[Id]>>
}
