import { InvalidArgumentError } from 'commander'

/** Parses the value of an option as a whole number. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`Expected an integer from ${min} to ${max}.`)
  }
}
