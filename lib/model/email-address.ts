/** Mail addresses: ASCII only, since case mapping of other letters makes two addresses one. */

/** 64 characters at most before the @, 255 behind it. */
export const MAX_EMAIL = 320

const FORM =
  /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?=.{1,255}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/

/** Whether a text can be an address of an account. */
export const isEmailAddress = (text: string): boolean => FORM.test(text)

/** The one spelling by which an address is looked up and kept. */
export const normalEmail = (address: string): string => address.replaceAll(/[A-Z]/g, letter => letter.toLowerCase())
