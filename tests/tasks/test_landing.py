"""Plans of trainings whose rate falls to zero at their end."""

from heedful.tasks.landing import BATCHES_PER_EPOCH, Course, plan_landing

COURSE = Course((16, 64), 1_000, (3, 40))


def test_few_items_make_small_batches_and_many_epochs():
    few, many = plan_landing(COURSE, 200, 2_000), plan_landing(COURSE, 100_000, 1_000_000)
    assert (few.batch_tokens, few.num_epochs) == (160, 40)
    assert (many.batch_tokens, many.num_epochs) == (640, 3)
    middle = plan_landing(COURSE, 32 * BATCHES_PER_EPOCH, 320 * BATCHES_PER_EPOCH)
    assert middle.batch_tokens == 320
    assert middle.num_epochs == round(1_000 / BATCHES_PER_EPOCH)


def test_the_rate_rises_for_a_twentieth_of_whatever_limits_the_training():
    plan = plan_landing(COURSE, 6_400, 64_000)
    assert plan.warmup_steps == plan.num_epochs * plan.steps_per_epoch // 20
    assert plan_landing(COURSE, 6_400, 64_000, max_steps=60).warmup_steps == 3
    in_time = plan_landing(COURSE, 6_400, 64_000, num_seen=128_000.0)
    assert (in_time.warmup_steps, in_time.validate_every) == (100, 200)


def test_a_short_time_makes_smaller_batches_rather_than_few():
    plan = plan_landing(COURSE, 6_400, 64_000, num_seen=20_000.0)
    assert plan.batch_tokens == 200
    assert plan_landing(COURSE, 6_400, 64_000, num_seen=1.0).batch_tokens == 160


def test_a_limit_of_the_user_takes_the_place_of_the_epochs():
    plan = plan_landing(COURSE, 6_400, 64_000)
    assert plan.settings(1e-3, is_limited=False)["max_epochs"] == plan.num_epochs
    assert "max_epochs" not in plan.settings(1e-3, is_limited=True)
